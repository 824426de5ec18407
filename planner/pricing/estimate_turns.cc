#include "planner/pricing/estimate_turns.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace motley::planner {
namespace {

constexpr int64_t kMostRounds = 192, kFollowed = 128;
constexpr int64_t kLeastFollowed = 16;  // rounds of a stage in half of kFollowed: fewer do not show its pace

class Turns {
 public:
  explicit Turns(const std::vector<TurnStage>& stages) : stages_(stages), states_(stages.size()) {
    for (size_t s = 0; s < stages.size(); ++s) {
      states_[s].limit = std::max<int64_t>(1, stages[s].in_flight);
      states_[s].arrived_forward.reserve(static_cast<size_t>(stages[s].rounds));
      states_[s].arrived_backward.reserve(static_cast<size_t>(stages[s].rounds));
    }
  }

  std::vector<double> Ends() {
    for (bool left = true; left;) {
      bool moved = false;
      for (size_t s = 0; s < stages_.size(); ++s) moved |= Run(s);
      for (size_t i = stages_.size(); i-- > 0;) moved |= Run(i);
      left = false;
      for (size_t s = 0; s < stages_.size(); ++s) left |= states_[s].backwards < stages_[s].rounds;
      // Unlike rounds may need more in flight than a stage's limit, as in the lowering: the first forward that the data allow.
      if (left && !moved && !GoBeyondLimit()) break;
    }
    std::vector<double> ends;
    for (size_t s = 0; s < stages_.size(); ++s) {
      const TurnStage& stage = stages_[s];
      const auto put_off = static_cast<double>(std::min(stage.weight_delay, stage.rounds));
      ends.push_back(states_[s].free + put_off * stage.weight_seconds);
    }
    return ends;
  }

 private:
  struct State {
    int64_t forwards = 0, backwards = 0, limit = 1;
    double free = 0;  // the stage's compute
    double sent = 0;  // what it sends, both ways: one transfer after the other, as in the simulator
    std::vector<double> arrived_forward, arrived_backward;  // at the neighbour, by round
  };

  // The sender's round that carries the last sample of the receiver's round k; -1 = not sent yet.
  static int64_t Needed(int64_t k, const TurnStage& receiver, const TurnStage& sender) {
    if (sender.rounds == receiver.rounds) return k;
    return ((k + 1) * sender.rounds + receiver.rounds - 1) / receiver.rounds - 1;
  }

  bool Arrived(size_t s, bool backward, double* at) const {
    const State& state = states_[s];
    *at = state.free;
    const bool end = backward ? s + 1 == stages_.size() : s == 0;
    if (end) return true;
    const size_t from = backward ? s + 1 : s - 1;
    const std::vector<double>& sent = backward ? states_[from].arrived_backward : states_[from].arrived_forward;
    const int64_t round = Needed(backward ? state.backwards : state.forwards, stages_[s], stages_[from]);
    if (round >= static_cast<int64_t>(sent.size())) return false;
    *at = std::max(*at, sent[round]);
    return true;
  }

  // What the order wants next, as long as it may go; false: nothing went.
  bool Run(size_t s) {
    State& state = states_[s];
    const TurnStage& stage = stages_[s];
    bool moved = false;
    for (;;) {
      const bool forward = state.forwards < stage.rounds && state.forwards - state.backwards < state.limit;
      if (!forward && state.backwards == state.forwards) return moved;
      double at = 0;
      if (!Arrived(s, !forward, &at)) return moved;
      forward ? Forward(s, at) : Backward(s, at);
      moved = true;
    }
  }

  bool GoBeyondLimit() {
    for (size_t s = 0; s < stages_.size(); ++s) {
      double at = 0;
      if (states_[s].forwards == stages_[s].rounds || !Arrived(s, false, &at)) continue;
      Forward(s, at);
      states_[s].limit = std::max(states_[s].limit, states_[s].forwards - states_[s].backwards);
      return true;
    }
    return false;
  }

  void Forward(size_t s, double at) {
    State& state = states_[s];
    const TurnStage& stage = stages_[s];
    state.free = at + stage.forward_seconds;
    ++state.forwards;
    if (s + 1 < stages_.size()) {
      state.arrived_forward.push_back(
          Send(stage.border_seconds / static_cast<double>(stage.rounds), stage.border_latency_seconds, state.free, &state.sent));
    }
  }

  void Backward(size_t s, double at) {
    State& state = states_[s];
    const TurnStage& stage = stages_[s];
    state.free = at + stage.backward_seconds;
    ++state.backwards;
    if (s > 0) {
      const TurnStage& before = stages_[s - 1];
      state.arrived_backward.push_back(Send(before.border_seconds / static_cast<double>(stage.rounds),
                                            before.border_latency_seconds, state.free, &state.sent));
    }
    if (state.backwards > stage.weight_delay) state.free += stage.weight_seconds;
  }

  static double Send(double seconds, double latency, double at, double* free) {
    *free = std::max(*free, at) + seconds + latency;
    return *free;
  }

  const std::vector<TurnStage>& stages_;
  std::vector<State> states_;
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
