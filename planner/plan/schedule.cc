#include "planner/plan/schedule.h"

#include <algorithm>

namespace motley::planner {
namespace {

// The member's microbatches by round; -1 = none.
std::vector<int64_t> ByRound(const StageSchedule& stage, size_t member) {
  std::vector<int64_t> of_round(static_cast<size_t>(NumRounds(stage)), -1);
  const MemberMicrobatches& microbatches = stage.members[member];
  for (size_t k = 0; k < microbatches.size(); ++k) of_round[microbatches[k].round] = static_cast<int64_t>(k);
  return of_round;
}

}  // namespace

int64_t NumRounds(const StageSchedule& stage) {
  int64_t rounds = 0;
  for (const MemberMicrobatches& member : stage.members) {
    for (const ScheduledMicrobatch& microbatch : member) rounds = std::max(rounds, microbatch.round + 1);
  }
  return rounds;
}

std::vector<Action> ActionsOf(const StageSchedule& stage, size_t member) {
  const std::vector<int64_t> of_round = ByRound(stage, member);
  std::vector<Action> actions;
  for (const Action& action : stage.actions) {
    Action own = action;
    own.first = own.last = -1;
    for (int64_t round = action.first; round < action.last; ++round) {
      const int64_t k = of_round[round];
      if (k < 0) continue;
      if (own.first < 0) own.first = k;
      own.last = k + 1;
    }
    if (own.first >= 0) actions.push_back(own);
  }
  return actions;
}

int64_t MostInFlight(const StageSchedule& stage, size_t member) {
  int64_t in_flight = 0, most = 0;
  for (const Action& action : ActionsOf(stage, member)) {
    const int64_t microbatches = action.last - action.first;
    if (action.kind == ActionKind::kForward) in_flight += microbatches;
    if (action.kind == ActionKind::kBackward || action.kind == ActionKind::kWeightGradient) in_flight -= microbatches;
    most = std::max(most, in_flight);
  }
  return most;
}

}  // namespace motley::planner
