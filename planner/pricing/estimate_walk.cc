#include "planner/pricing/estimate_walk.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "planner/scheduling/stage_orders.h"

namespace motley::planner {
namespace {

constexpr int64_t kFollowed = 64;       // rounds that show the pace, behind as many
constexpr int64_t kLeastFollowed = 16;  // of a stage in those: fewer do not show it

// When something is over: in seconds, and in the schedule's own time, which says in which order stages send and receive
// (planner/plan/schedule_walk.h): a forward of the same samples takes as long on every stage, a backward twice as long.
struct Moment {
  double seconds = 0, logical = 0;
};

struct TimedStage {
  const Action *next = nullptr, *end = nullptr;
  double arrival = 0;              // of what the next action waits for
  Moment free;                     // the stage's compute
  double sends = 0, receives = 0;  // when these lanes are free
};

struct VirtualPasses {
  size_t stage = 0;
  int64_t rounds = 1;
  double unit = 1;  // of logical time: a round's forward
  // Forward and backward: neighbours of other stages; a round's transfer, and when each was over there.
  VirtualPasses *from[2] = {nullptr, nullptr}, *to[2] = {nullptr, nullptr};
  double transfer[2] = {0, 0};
  std::vector<Moment> sent[2];
};

class TimedWalk {
 public:
  TimedWalk(ScheduleFamily family, const TimedPipeline& pipeline)
      : pipeline_(pipeline), virtual_(pipeline.passes.size()), mender_(family, pipeline.places) {
    for (size_t s = 0; s < pipeline.places.size(); ++s) {
      const int64_t rounds = pipeline.places[s].rounds;
      for (const int32_t v : pipeline.places[s].virtual_stages)
        virtual_[v] = {s, rounds, pipeline.passes[v].part / static_cast<double>(rounds)};
    }
    for (size_t v = 0; v + 1 < virtual_.size(); ++v) Join(v);
    Begin();
  }

  std::vector<double> Ends() {
    for (;;) {
      const double now = *std::min_element(next_ends_.begin(), next_ends_.end());
      if (now == kNever && !Mend()) break;
      for (size_t s = 0; now < kNever && s < stages_.size(); ++s) {
        if (next_ends_[s] <= now) Run(s);
      }
    }
    std::vector<double> ends;
    for (const TimedStage& stage : stages_) ends.push_back(stage.free.seconds);
    return ends;
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  static bool IsBackward(const Action& action) { return action.kind != ActionKind::kForward; }
  const std::vector<Action>& Order(size_t s) const { return mender_.orders()[s]; }

  // The virtual stage and the one behind it.
  void Join(size_t v) {
    if (virtual_[v].stage == virtual_[v + 1].stage) return;
    for (const bool backward : {false, true}) {
      VirtualPasses &from = virtual_[backward ? v + 1 : v], &to = virtual_[backward ? v : v + 1];
      from.to[backward] = &to;
      to.from[backward] = &from;
      from.transfer[backward] = pipeline_.passes[v].border.Of(from.rounds);
      from.sent[backward].reserve(static_cast<size_t>(from.rounds));
    }
  }

  void Begin() {
    for (VirtualPasses& v : virtual_) v.sent[0].clear(), v.sent[1].clear();
    next_ends_.assign(pipeline_.places.size(), kNever);
    stages_.assign(pipeline_.places.size(), {});
    for (size_t s = 0; s < stages_.size(); ++s) stages_[s].free.seconds = pipeline_.start_seconds[s];
    for (size_t s = 0; s < stages_.size(); ++s) GoOn(s, 0);
  }

  // In the mender's order, so many actions being over.
  void GoOn(size_t s, size_t over) {
    stages_[s].next = Order(s).data() + over;
    stages_[s].end = Order(s).data() + Order(s).size();
    FindNext(s);
  }

  // What an action waits for from another stage; nullptr = it has not been sent.
  const Moment* Arrival(const Action& action) const {
    static constexpr Moment kThere;
    const VirtualPasses& v = virtual_[action.virtual_stage];
    const VirtualPasses* from = v.from[IsBackward(action)];
    if (from == nullptr) return &kThere;
    const std::vector<Moment>& sent = from->sent[IsBackward(action)];
    int64_t round = action.first;  // that carries its last sample
    if (from->rounds != v.rounds) round = ((round + 1) * from->rounds + v.rounds - 1) / v.rounds - 1;
    return round < static_cast<int64_t>(sent.size()) ? &sent[static_cast<size_t>(round)] : nullptr;
  }

  void FindNext(size_t s) {
    TimedStage& stage = stages_[s];
    next_ends_[s] = kNever;
    if (stage.next == stage.end) return;
    const Action& action = *stage.next;
    const Moment* arrival = Arrival(action);
    if (arrival == nullptr) return;
    stage.arrival = arrival->seconds;
    const double passes = action.kind == ActionKind::kBackward ? 2 : 1;
    next_ends_[s] = std::max(stage.free.logical, arrival->logical) + passes * virtual_[action.virtual_stage].unit;
  }

  void Run(size_t s) {
    TimedStage& stage = stages_[s];
    const Action& action = *stage.next++;
    const TimedPass& pass = pipeline_.passes[action.virtual_stage];
    const bool backward = IsBackward(action);
    const double ahead = backward ? pass.ahead_seconds : 0;
    stage.free = {
        std::max(stage.free.seconds + ahead, stage.arrival) + (backward ? pass.backward_seconds : pass.forward_seconds) - ahead,
        next_ends_[s]};
    Send(backward, &stage, &virtual_[action.virtual_stage]);
    // Weights' gradients wait for nobody, and nobody for them.
    for (; stage.next < stage.end && stage.next->kind == ActionKind::kWeightGradient; ++stage.next) {
      stage.free.seconds += pipeline_.passes[stage.next->virtual_stage].weight_seconds;
      stage.free.logical += virtual_[stage.next->virtual_stage].unit;
    }
    FindNext(s);
  }

  // One transfer after the other: both lanes are taken until it is over.
  void Send(bool backward, TimedStage* from, VirtualPasses* v) {
    if (v->to[backward] == nullptr) return;
    const size_t to = v->to[backward]->stage;
    double& receives = stages_[to].receives;
    from->sends = receives = std::max({from->free.seconds, from->sends, receives}) + v->transfer[backward];
    v->sent[backward].push_back({from->sends, from->free.logical});
    if (next_ends_[to] == kNever) FindNext(to);
  }

  // Unlike rounds may need more in flight than a stage's limit. False: all is done.
  bool Mend() {
    std::vector<ForwardAhead> could_run_ahead;
    size_t over = 0;  // actions of the last of them
    bool stuck = false;
    for (size_t s = 0; s < stages_.size(); ++s) {
      stuck |= stages_[s].next < stages_[s].end;
      const auto at = static_cast<size_t>(stages_[s].next - Order(s).data());
      const std::optional<ForwardAhead> ahead = ForwardBehind(s, Order(s), at);
      if (!ahead || Arrival(Order(s)[ahead->action]) == nullptr) continue;
      could_run_ahead.push_back(*ahead);
      over = at;
    }
    if (!stuck || !mender_.Mend(could_run_ahead)) return false;
    // What has been done is the same in an order with a higher limit.
    mender_.by_virtual_stage() ? Begin() : GoOn(could_run_ahead.back().stage, over);
    return true;
  }

  const TimedPipeline& pipeline_;
  std::vector<VirtualPasses> virtual_;
  OrderMender mender_;
  std::vector<TimedStage> stages_;
  std::vector<double> next_ends_;  // of the stages' next passes, in logical time; kNever: it cannot begin yet
};

}  // namespace

std::vector<double> EndsOfWalk(ScheduleFamily family, const TimedPipeline& pipeline) {
  // Several virtual stages a stage pass as many rounds at a time as there are stages.
  const auto stages = static_cast<int64_t>(pipeline.places.size());
  const int64_t followed = pipeline.passes.size() > pipeline.places.size() ? (kFollowed / stages + 1) * stages : kFollowed;
  int64_t most = 1;
  for (const StagePlace& place : pipeline.places) most = std::max(most, place.rounds);
  // Unlike rounds that are not in step meet differently from one end of the batch to the other.
  const bool repeats = std::all_of(pipeline.places.begin(), pipeline.places.end(), [&](const StagePlace& place) {
    return place.rounds * followed % most == 0 && place.rounds * followed / most >= kLeastFollowed;
  });
  if (most <= 3 * followed || !repeats) return TimedWalk(family, pipeline).Ends();
  const auto ends_of_first = [&](int64_t rounds) {
    TimedPipeline first = pipeline;
    for (TimedPass& pass : first.passes) pass.border.seconds *= static_cast<double>(rounds) / static_cast<double>(most);
    for (StagePlace& place : first.places) place.rounds = place.rounds * rounds / most;
    return TimedWalk(family, first).Ends();
  };
  std::vector<double> ends = ends_of_first(2 * followed);
  const std::vector<double> before = ends_of_first(followed);
  for (size_t s = 0; s < ends.size(); ++s) {
    ends[s] += (ends[s] - before[s]) * static_cast<double>(most - 2 * followed) / static_cast<double>(followed);
  }
  return ends;
}

}  // namespace motley::planner
