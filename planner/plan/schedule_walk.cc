#include "planner/plan/schedule_walk.h"

#include <algorithm>
#include <queue>
#include <tuple>
#include <utility>

#include "planner/plan/state_in_turn.h"
#include "planner/plan/unit_slices.h"
#include "planner/util/work_count.h"

namespace motley::planner {
namespace {

// Tensor-parallel ranks' sums stand behind their stage's collectives, so a buffer that is free does not let them run ahead.
constexpr int64_t kBuffersBesideSums = 1;

bool IsBackward(ActionKind kind) { return kind == ActionKind::kBackward || kind == ActionKind::kInputGradient; }

// A microbatch of a stage by its place in the batch.
struct Slot {
  int64_t begin = 0, end = 0;
  size_t member = 0;
  int64_t microbatch = 0;
};

// One thing that a member does.
struct Item {
  size_t action = 0;
  int64_t microbatch = 0;
};

struct Member {
  std::vector<Item> items;
  std::vector<double> duration;  // by microbatch: of a forward through the whole stage
  std::vector<size_t> slot_of;   // by microbatch
  size_t next = 0;               // item
  size_t passed = 0;             // actions that it is through with
  double free = 0;
};

// What a slot of a virtual stage still waits for from the one before (or behind), and when the newest of it came.
struct Arrival {
  int64_t missing = 0;
  double time = 0;
};

struct Stage {
  std::vector<Member> members;
  std::vector<Slot> slots;           // by their samples
  std::vector<size_t> must_be_over;  // by action: all members have done so many actions before one begins it
  std::vector<bool> together;        // by action: nobody ends it before all have begun it
  bool meets = false;                // in some action
  std::vector<std::vector<std::pair<size_t, Item>>> of_action;  // members and their items; of those that are together
  std::vector<size_t> passed;                                   // by action: members that are through with it
  std::vector<double> end;                                      // by action: when the last of them was, or of an action before
  size_t over = 0;                                              // actions that all members have done
};

class Walker {
 public:
  Walker(const Plan& plan, size_t p, const PipelineSchedule& schedule, bool training)
      : plan_(plan.pipelines[p]), schedule_(schedule) {
    for (size_t s = 0; s < schedule.stages.size(); ++s) AddStage(s, StateOf(plan, plan_.stages[s]), training);
    AddWeights();
    for (auto& pass : arrivals_) pass.resize(schedule.stage_of.size());
    for (size_t v = 0; v < schedule.stage_of.size(); ++v) ExpectArrivals(static_cast<int32_t>(v));
  }

  PipelineWalk Walk() {
    for (size_t s = 0; s < stages_.size(); ++s) {
      for (size_t m = 0; m < stages_[s].members.size(); ++m) CountPassed(s, m);
      PushAll(s);
    }
    while (!queue_.empty()) {
      const auto [time, s, m, item] = queue_.top();
      queue_.pop();
      if (stages_[s].members[m].next == item) Do(s, m, time);
    }
    PipelineWalk walk;
    walk.times = std::move(times_);
    for (size_t s = 0; s < stages_.size(); ++s) AddStuck(s, &walk);
    return walk;
  }

 private:
  const StageSchedule& Of(size_t s) const { return schedule_.stages[s]; }
  const Action& ActionAt(size_t s, const Item& item) const { return Of(s).actions[item.action]; }
  size_t StageOf(int32_t v) const { return static_cast<size_t>(schedule_.stage_of[v]); }

  // ---- before the walk ----

  void AddStage(size_t s, const StateInTurn& state, bool training) {
    Stage& stage = stages_.emplace_back();
    const StageSchedule& schedule = Of(s);
    stage.members.resize(schedule.members.size());
    std::vector<std::vector<int64_t>> of_round(schedule.members.size());
    for (size_t m = 0; m < schedule.members.size(); ++m) {
      of_round[m].assign(static_cast<size_t>(NumRounds(schedule)), -1);
      for (size_t k = 0; k < schedule.members[m].size(); ++k) {
        const ScheduledMicrobatch& microbatch = schedule.members[m][k];
        of_round[m][microbatch.round] = static_cast<int64_t>(k);
        stage.slots.push_back({microbatch.first, microbatch.end(), m, static_cast<int64_t>(k)});
      }
    }
    std::sort(stage.slots.begin(), stage.slots.end(), [](const Slot& a, const Slot& b) { return a.begin < b.begin; });
    const double batch = stage.slots.empty() ? 1 : static_cast<double>(stage.slots.back().end);
    for (size_t m = 0; m < stage.members.size(); ++m) AddMember(schedule, m, of_round[m], batch, &stage.members[m]);
    for (size_t i = 0; i < stage.slots.size(); ++i) {
      stage.members[stage.slots[i].member].slot_of[stage.slots[i].microbatch] = i;
    }
    stage.passed.assign(schedule.actions.size(), 0);
    stage.end.assign(schedule.actions.size(), 0);
    LockSteps(s, state, training, &stage);
    stage.of_action.resize(schedule.actions.size());
    for (size_t m = 0; m < stage.members.size(); ++m) {
      for (const Item& item : stage.members[m].items) {
        if (!stage.together[item.action]) continue;
        stage.of_action[item.action].emplace_back(m, item);
        stage.meets = true;
      }
    }
    std::vector<LogicalTimes>& times = times_.emplace_back();
    for (const MemberMicrobatches& member : schedule.members) times.emplace_back(schedule_.stage_of.size(), member.size());
  }

  static void AddMember(const StageSchedule& schedule, size_t m, const std::vector<int64_t>& of_round, double batch,
                        Member* member) {
    const size_t count = schedule.members[m].size();
    member->slot_of.resize(count);
    double before = 0;
    for (const ScheduledMicrobatch& microbatch : schedule.members[m]) {
      const double over = static_cast<double>(microbatch.end()) / batch;
      member->duration.push_back(std::max(0.0, over - before));
      before = std::max(before, over);
    }
    for (size_t a = 0; a < schedule.actions.size(); ++a) {
      for (int64_t round = schedule.actions[a].first; round < schedule.actions[a].last; ++round) {
        if (of_round[round] >= 0) member->items.push_back({a, of_round[round]});
      }
    }
  }

  // Blocks that are gathered (or whose gradients are reduced) in turn share buffers, and the ranks meet at each: of more blocks
  // than buffers nobody ends such an action before all have begun it. So nobody begins it before all have done what is before,
  // nor anything behind it before all have done it; and, as nothing of it is handed on before its end, before all have what they
  // need for it.
  void LockSteps(size_t s, const StateInTurn& state, bool training, Stage* stage) const {
    const bool gathers = state.shared() && state.Gathers(), reduces = training && state.shared() && state.Reduces();
    const bool sums = IsTensorParallel(plan_.stages[s]);
    size_t behind_backwards = 0;
    for (size_t a = 0; a < Of(s).actions.size(); ++a) {
      const bool is_forward = Of(s).actions[a].kind == ActionKind::kForward;
      const bool single = Of(s).actions[a].last - Of(s).actions[a].first == 1;  // else all microbatches pass a block in turn
      const bool locked = gathers || (reduces && !is_forward);
      const auto meets = [&](int64_t blocks) {
        return blocks > (sums ? kBuffersBesideSums : reduces && !is_forward ? kBuffersInTurn : state.ParameterBuffers(blocks));
      };
      stage->must_be_over.push_back(locked ? a : reduces ? behind_backwards : 0);
      stage->together.push_back(locked && single && meets(BlocksOf(s, Of(s).actions[a].virtual_stage)));
      if (!is_forward) behind_backwards = a + 1;
    }
  }

  // The layers of a virtual stage, with the embedding and the head.
  int64_t BlocksOf(size_t s, int32_t v) const {
    const auto own = std::count(schedule_.stage_of.begin(), schedule_.stage_of.begin() + v, static_cast<int32_t>(s));
    const LayerRange& range = plan_.stages[s].ministages[static_cast<size_t>(own)];
    const auto last = static_cast<int32_t>(schedule_.stage_of.size()) - 1;
    return range.layers() + (v == 0 ? 1 : 0) + (v == last ? 1 : 0);
  }

  // A virtual stage's part of its stage's layers.
  void AddWeights() {
    std::vector<size_t> next(stages_.size(), 0);
    for (const int32_t s : schedule_.stage_of) {
      const StagePlan& stage = plan_.stages[s];
      weight_.push_back(static_cast<double>(stage.ministages[next[s]++].layers()) / static_cast<double>(stage.layers()));
    }
  }

  template <typename Use>
  void ForEachOverlap(const Slot& slot, size_t to, Use use) {
    const std::vector<Slot>& slots = stages_[to].slots;
    auto it = std::partition_point(slots.begin(), slots.end(), [&slot](const Slot& other) { return other.end <= slot.begin; });
    for (; it != slots.end() && it->begin < slot.end; ++it) use(static_cast<size_t>(it - slots.begin()));
  }

  std::vector<Arrival>& Arrivals(bool backward, int32_t v) { return arrivals_[backward ? 1 : 0][v]; }

  // From another stage. In the same one the member has what it made itself.
  void ExpectArrivals(int32_t v) {
    const size_t s = StageOf(v);
    for (const bool backward : {false, true}) {
      const int32_t from = backward ? v + 1 : v - 1;
      std::vector<Arrival>& arrivals = Arrivals(backward, v);
      arrivals.resize(stages_[s].slots.size());
      if (from < 0 || from >= static_cast<int32_t>(schedule_.stage_of.size()) || StageOf(from) == s) continue;
      for (size_t i = 0; i < arrivals.size(); ++i) {
        ForEachOverlap(stages_[s].slots[i], StageOf(from), [&](size_t) { ++arrivals[i].missing; });
      }
    }
  }

  // ---- the walk ----

  // What an item waits for from elsewhere; nullptr = nothing.
  const Arrival* ArrivalOf(size_t s, size_t m, const Item& item) {
    const Action& action = ActionAt(s, item);
    if (action.kind == ActionKind::kWeightGradient) return nullptr;
    return &Arrivals(IsBackward(action.kind), action.virtual_stage)[stages_[s].members[m].slot_of[item.microbatch]];
  }

  void Push(size_t s, size_t m) {
    const Stage& stage = stages_[s];
    const Member& member = stage.members[m];
    if (member.next == member.items.size()) return;
    const Item& item = member.items[member.next];
    const size_t must_be_over = stage.must_be_over[item.action];
    if (stage.over < must_be_over) return;
    double time = std::max(member.free, must_be_over > 0 ? stage.end[must_be_over - 1] : 0);
    if (!HasArrived(s, m, item, &time)) return;
    if (stage.together[item.action]) {
      for (const auto& [other, its] : stage.of_action[item.action]) {
        if (!HasArrived(s, other, its, &time)) return;
      }
    }
    queue_.emplace(time, s, m, member.next);
  }
  // Whether what the item waits for is there, and by then.
  bool HasArrived(size_t s, size_t m, const Item& item, double* time) {
    const Arrival* arrival = ArrivalOf(s, m, item);
    if (arrival == nullptr) return true;
    *time = std::max(*time, arrival->time);
    return arrival->missing == 0;
  }
  void PushAll(size_t s) {
    for (size_t m = 0; m < stages_[s].members.size(); ++m) Push(s, m);
  }

  void Do(size_t s, size_t m, double time) {
    Member& member = stages_[s].members[m];
    const Item item = member.items[member.next];
    const Action& action = ActionAt(s, item);
    const double forward = member.duration[item.microbatch] * weight_[action.virtual_stage];
    const bool halved = action.kind == ActionKind::kInputGradient || action.kind == ActionKind::kWeightGradient;
    member.free = time + (action.kind == ActionKind::kForward || halved ? 1 : 2) * forward;
    times_[s][m].At(action.kind, action.virtual_stage, item.microbatch) = {time, member.free};
    Deliver(s, m, action, item.microbatch, member.free);
    ++member.next;
    // Others may have waited for an action's end.
    CountPassed(s, m) ? PushAll(s) : Push(s, m);
  }

  // Whether an action is over that was not.
  bool CountPassed(size_t s, size_t m) {
    Stage& stage = stages_[s];
    Member& member = stage.members[m];
    const size_t actions = stage.passed.size(), before = stage.over;
    const size_t through = member.next < member.items.size() ? member.items[member.next].action : actions;
    for (; member.passed < through; ++member.passed) {
      ++stage.passed[member.passed];
      stage.end[member.passed] = std::max(stage.end[member.passed], member.free);
    }
    for (; stage.over < actions && stage.passed[stage.over] == stage.members.size(); ++stage.over) {
      if (stage.over > 0) stage.end[stage.over] = std::max(stage.end[stage.over], stage.end[stage.over - 1]);
    }
    return stage.over > before;
  }

  void Deliver(size_t s, size_t m, const Action& action, int64_t microbatch, double time) {
    if (action.kind == ActionKind::kWeightGradient) return;
    const bool backward = IsBackward(action.kind);
    const int32_t to = action.virtual_stage + (backward ? -1 : 1);
    if (to < 0 || to >= static_cast<int32_t>(schedule_.stage_of.size()) || StageOf(to) == s) return;
    const size_t target = StageOf(to);
    ForEachOverlap(stages_[s].slots[stages_[s].members[m].slot_of[microbatch]], target, [&](size_t i) {
      Arrival& arrival = Arrivals(backward, to)[i];
      arrival.time = std::max(arrival.time, time);
      if (--arrival.missing > 0) return;
      stages_[target].meets ? PushAll(target) : Push(target, stages_[target].slots[i].member);
    });
  }

  // ---- after it ----

  void AddStuck(size_t s, PipelineWalk* walk) {
    const Stage& stage = stages_[s];
    bool stuck = false;
    for (size_t m = 0; m < stage.members.size(); ++m) {
      const Member& member = stage.members[m];
      if (member.next == member.items.size()) continue;
      stuck = true;
      walk->stuck.push_back({s, m, member.items[member.next].action, member.items[member.next].microbatch});
    }
    if (stuck) AddAhead(s, walk);
  }

  void AddAhead(size_t s, PipelineWalk* walk) {
    const Stage& stage = stages_[s];
    const std::optional<ForwardAhead> ahead = ForwardBehind(s, Of(s).actions, stage.over);  // the first that not all have done
    if (!ahead) return;
    for (size_t m = 0; m < stage.members.size(); ++m) {
      for (const Item& item : stage.members[m].items) {
        if (item.action == ahead->action && ArrivalOf(s, m, item)->missing > 0) return;
      }
    }
    walk->could_run_ahead.push_back(*ahead);
  }

  const PipelinePlan& plan_;
  const PipelineSchedule& schedule_;
  std::vector<Stage> stages_;
  std::vector<double> weight_;                     // by virtual stage
  std::vector<std::vector<Arrival>> arrivals_[2];  // forward, backward; by virtual stage, slot
  std::vector<std::vector<LogicalTimes>> times_;
  using Entry = std::tuple<double, size_t, size_t, size_t>;  // time, stage, member, its item
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
};

int64_t InFlightBy(const Action& action) {
  if (action.kind == ActionKind::kWeightGradient) return 0;
  return (action.kind == ActionKind::kForward ? 1 : -1) * (action.last - action.first);
}

}  // namespace

std::optional<ForwardAhead> ForwardBehind(size_t stage, const std::vector<Action>& actions, size_t at) {
  if (at >= actions.size() || actions[at].kind == ActionKind::kForward) return std::nullopt;
  ForwardAhead ahead{stage, at, 0};
  while (ahead.action < actions.size() && actions[ahead.action].kind != ActionKind::kForward) ++ahead.action;
  if (ahead.action == actions.size()) return std::nullopt;
  for (size_t a = 0; a < at; ++a) ahead.in_flight += InFlightBy(actions[a]);
  ahead.in_flight += InFlightBy(actions[ahead.action]);
  return ahead;
}

PipelineWalk WalkSchedule(const Plan& plan, size_t p, const PipelineSchedule& schedule, bool training) {
  ++WorkOfThread().walks;
  return Walker(plan, p, schedule, training).Walk();
}

}  // namespace motley::planner
