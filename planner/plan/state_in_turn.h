// What of a stage's state is on the device only while it is used, and in how many buffers units take turns. The walk through the
// schedule, the passes that write programs, the estimate and the closed form of bytes ask here.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/program/offload_kinds.h"
#include "planner/plan/plan.h"
#include "planner/plan/schedule_family.h"

namespace motley::planner {

// Buffers in turn: of a unit that is used, and of the one that comes or goes meanwhile.
inline constexpr int32_t kBuffersInTurn = 2;

struct StateInTurn {
  ScheduleFamily schedule = ScheduleFamily::kLayered;
  int zero_stage = 0;                 // as the plan has it
  int64_t units = 1, ranks = 1;       // of the stage
  bool across = false;                // other pipelines hold the same units and sum with it
  OffloadKinds offload;               // of any rank
  bool steps_in_turn = false;         // a unit is stepped once its sum is there, not at the step's end
  int64_t prefetch = 1;               // units that come ahead of their use from host memory
  bool keeps_two_ministages = false;  // of parameters that wait in host memory

  bool layered() const { return TraitsOf(schedule).by_ministage; }
  // Units that share state: nothing is gathered or reduced for one.
  bool shared() const { return units > 1; }
  // Beside other pipelines stages whose parameters wait in host memory keep them and their gradients whole.
  int ZeroAsRun() const { return !shared() || (across && offload.parameters) ? std::min(zero_stage, 1) : zero_stage; }
  // Parameters come in turn; else every unit has a home.
  bool Gathers() const { return (offload.parameters && !across) || ZeroAsRun() == 3; }
  // All of a rank's microbatches pass a unit before the next; or all pass a ministage, whose units stay for so long.
  bool GathersByUnit() const { return layered() && ZeroAsRun() == 3; }
  bool GathersByMinistage() const { return layered() && Gathers() && !GathersByUnit(); }
  bool GathersEveryRound() const { return !layered() && Gathers(); }
  // Each unit is summed once, and its sum leaves the buffer whole: for host memory, or for the unit's step.
  bool SumsLeave() const { return !across && (offload.gradients || steps_in_turn); }
  // Gradients are in buffers in turn; else they have homes.
  bool Reduces() const { return shared() ? ZeroAsRun() >= 2 : layered() && ranks == 1 && SumsLeave(); }
  // Of what is gathered. `largest`: units of the largest ministage, which stay until its last microbatch has passed them.
  int64_t ParameterBuffers(int64_t largest) const {
    const int64_t ahead = offload.parameters ? prefetch : 1;
    if (!GathersByMinistage()) return ahead + 1;
    return largest + (keeps_two_ministages ? std::max(largest, ahead) : ahead);
  }
};

inline StateInTurn StateOf(const Plan& plan, const StagePlan& stage) {
  StateInTurn state{plan.schedule, stage.zero_stage, static_cast<int64_t>(stage.units.size()), 0, plan.pipelines.size() > 1};
  state.prefetch = stage.prefetch;
  state.steps_in_turn = plan.optimizer_steps == OptimizerSteps::kInTurn;
  for (const UnitPlan& unit : stage.units) {
    state.ranks += static_cast<int64_t>(unit.ranks.size());
    for (const RankPlan& rank : unit.ranks) state.offload = state.offload.Or(rank.offload);
  }
  return state;
}

// Published systems keep two ministages of parameters that wait in host memory, and step each behind its sum (Zorse section 3.1).
inline StateInTurn AsPublished(StateInTurn state) {
  state.keeps_two_ministages = true;
  state.steps_in_turn |= state.layered() && !state.across && state.offload.parameters;
  return state;
}

}  // namespace motley::planner
