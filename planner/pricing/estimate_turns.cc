#include "planner/pricing/estimate_turns.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace motley::planner {
namespace {

constexpr int64_t kMostRounds = 192, kFollowed = 128;
constexpr int64_t kLeastFollowed = 16;  // rounds of a stage in half of kFollowed: fewer do not show its pace

// When something is over: in seconds, and in the schedule's own time, which says in which order stages send and receive
// (planner/plan/schedule_walk.h): a forward of the same samples takes as long on every stage, a backward twice as long.
struct Moment {
  double seconds = 0, logical = 0;
};

class Turns {
 public:
  explicit Turns(const std::vector<TurnStage>& stages)
      : stages_(stages), states_(stages.size()), next_ends_(stages.size(), kNever) {
    int64_t most = 1;
    for (const TurnStage& stage : stages) most = std::max(most, stage.rounds);
    for (size_t s = 0; s < stages.size(); ++s) {
      states_[s].free.seconds = stages[s].start_seconds;
      states_[s].limit = std::max<int64_t>(1, stages[s].in_flight);
      states_[s].unit = static_cast<double>(most) / static_cast<double>(stages[s].rounds);
      for (std::vector<Moment>& sent : states_[s].sent) sent.reserve(static_cast<size_t>(stages[s].rounds));
    }
    for (size_t s = 0; s + 1 < stages.size(); ++s) {
      states_[s].transfer[false] = TransferSeconds(stages[s], stages[s].rounds);
      states_[s + 1].transfer[true] = TransferSeconds(stages[s], stages[s + 1].rounds);
    }
    for (size_t s = 0; s < stages.size(); ++s) FindNext(s);
  }

  std::vector<double> Ends() {
    for (double now = 0;;) {
      now = *std::min_element(next_ends_.begin(), next_ends_.end());
      if (now == kNever && !GoBeyondLimit()) break;
      for (size_t s = 0; now < kNever && s < stages_.size(); ++s) {
        if (next_ends_[s] <= now) Run(s);
      }
    }
    std::vector<double> ends;
    for (size_t s = 0; s < stages_.size(); ++s) {
      const TurnStage& stage = stages_[s];
      const auto put_off = static_cast<double>(std::min(stage.weight_delay, stage.rounds));
      ends.push_back(states_[s].free.seconds + put_off * stage.weight_seconds);
    }
    return ends;
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  struct State {
    int64_t forwards = 0, backwards = 0, limit = 1;
    bool next_backward = false;      // the next pass
    double unit = 1;                 // of logical time: a round's forward
    Moment free;                     // the stage's compute
    double sends = 0, receives = 0;  // when these lanes are free
    double transfer[2] = {0, 0};     // seconds of a round's, forward and backward
    std::vector<Moment> sent[2];     // forward, backward: over at the neighbour, by round
  };

  // The sender's round that carries the last sample of the receiver's round k.
  static int64_t Needed(int64_t k, const TurnStage& receiver, const TurnStage& sender) {
    if (sender.rounds == receiver.rounds) return k;
    return ((k + 1) * sender.rounds + receiver.rounds - 1) / receiver.rounds - 1;
  }

  // What the stage's next pass waits for; nullptr = it has not been sent.
  const Moment* Arrival(size_t s, bool backward) const {
    static constexpr Moment kThere;
    const State& state = states_[s];
    if (backward ? s + 1 == stages_.size() : s == 0) return &kThere;
    const size_t from = backward ? s + 1 : s - 1;
    const std::vector<Moment>& sent = states_[from].sent[backward];
    const int64_t round = Needed(backward ? state.backwards : state.forwards, stages_[s], stages_[from]);
    return round < static_cast<int64_t>(sent.size()) ? &sent[static_cast<size_t>(round)] : nullptr;
  }

  // What the order wants next, as long as it may go.
  void FindNext(size_t s) {
    State& state = states_[s];
    state.next_backward = state.forwards == stages_[s].rounds || state.forwards - state.backwards >= state.limit;
    next_ends_[s] = kNever;
    if (state.backwards == stages_[s].rounds) return;
    const Moment* arrival = Arrival(s, state.next_backward);
    if (arrival == nullptr) return;
    const double passes = !state.next_backward || stages_[s].weight_seconds > 0 ? 1 : 2;
    next_ends_[s] = std::max(state.free.logical, arrival->logical) + passes * state.unit;
  }

  // Unlike rounds may need more in flight than a stage's limit, as in the lowering: the first forward that the data allow.
  bool GoBeyondLimit() {
    for (size_t s = 0; s < stages_.size(); ++s) {
      State& state = states_[s];
      if (state.forwards == stages_[s].rounds || Arrival(s, false) == nullptr) continue;
      state.limit = state.forwards - state.backwards + 1;
      FindNext(s);
      return true;
    }
    return false;
  }

  void Run(size_t s) {
    State& state = states_[s];
    const TurnStage& stage = stages_[s];
    const bool backward = state.next_backward;
    const double ahead = backward ? stage.ahead_seconds : 0;
    state.free.seconds = std::max(state.free.seconds + ahead, Arrival(s, backward)->seconds) +
                         (backward ? stage.backward_seconds : stage.forward_seconds) - ahead;
    state.free.logical = next_ends_[s];
    ++(backward ? state.backwards : state.forwards);
    if (backward ? s > 0 : s + 1 < stages_.size()) {
      const size_t to = backward ? s - 1 : s + 1;
      state.sent[backward].push_back({Send(state.transfer[backward], &state, &states_[to]), state.free.logical});
      if (next_ends_[to] == kNever) FindNext(to);
    }
    if (backward && stage.weight_seconds > 0 && state.backwards > stage.weight_delay) {
      state.free.seconds += stage.weight_seconds;
      state.free.logical += state.unit;
    }
    FindNext(s);
  }

  // One transfer after the other: both lanes are taken until it is over.
  static double Send(double seconds, State* from, State* to) {
    return from->sends = to->receives = std::max({from->free.seconds, from->sends, to->receives}) + seconds;
  }
  static double TransferSeconds(const TurnStage& border, int64_t rounds) {
    return border.border_seconds / static_cast<double>(rounds) + border.border_latency_seconds;
  }

  const std::vector<TurnStage>& stages_;
  std::vector<State> states_;
  std::vector<double> next_ends_;  // of the stages' next passes, in logical time; kNever: it cannot begin yet
};

// The same pipeline over a part of its batch; every stage's rounds divide.
std::vector<TurnStage> FirstRounds(std::vector<TurnStage> stages, int64_t most, int64_t rounds) {
  for (TurnStage& stage : stages) {
    stage.border_seconds *= static_cast<double>(rounds) / static_cast<double>(most);
    stage.rounds = stage.rounds * rounds / most;
  }
  return stages;
}

// Stages that repeat themselves: unlike rounds that are not in step meet differently from one end of the batch to the other.
bool Repeats(const std::vector<TurnStage>& stages, int64_t most) {
  return std::all_of(stages.begin(), stages.end(), [most](const TurnStage& stage) {
    const int64_t half = stage.rounds * (kFollowed / 2);
    return half % most == 0 && half / most >= kLeastFollowed;
  });
}

}  // namespace

std::vector<double> EndsOfTurns(const std::vector<TurnStage>& stages) {
  int64_t most = 1;
  for (const TurnStage& stage : stages) most = std::max(most, stage.rounds);
  if (most <= kMostRounds || !Repeats(stages, most)) return Turns(stages).Ends();
  const std::vector<TurnStage> half = FirstRounds(stages, most, kFollowed / 2), all = FirstRounds(stages, most, kFollowed);
  std::vector<double> ends = Turns(all).Ends();
  const std::vector<double> before = Turns(half).Ends();
  for (size_t s = 0; s < ends.size(); ++s) {
    ends[s] += (ends[s] - before[s]) * static_cast<double>(most - kFollowed) / static_cast<double>(kFollowed / 2);
  }
  return ends;
}

}  // namespace motley::planner
