// The program writer's passes over the steps of one stage: pure functions, each after the one above.
#pragma once

#include "planner/lowering/stage_steps.h"
#include "planner/plan/schedule.h"
#include "planner/plan/unit_slices.h"

namespace motley::planner {

// The schedule as steps, without buffers and collectives. "0F0 0B0" of units 1 and 2: forward of 1, of 2, backward of 2, of 1.
StageSteps ComputeSteps(const StageSchedule& schedule, const StageTraits& traits);

// Where the steps find their parameters, and the gathers that bring them. Units that stay have a buffer each, their home,
// gathered before the first step. The others live in two buffers: a step that does not find its unit takes the buffer whose last
// use is longest ago, and the gather into it follows that use.
StageSteps WithParameters(StageSteps stage, const StageTraits& traits);

// The buffers that backwards add to, and the reductions out of them. A unit with a home is reduced once, behind its last
// backward. The others share two buffers: a unit takes one at its first backward and leaves it at its reduction, behind the last
// backward or, where the stage reduces every round, behind each.
StageSteps WithGradients(StageSteps stage, const StageTraits& traits);

// Where reductions that no buffer waits for stand in a stage whose units are tensor-parallel: where they can begin, beside what
// is still computed; or behind the last step in which a unit's ranks meet, where they keep nobody waiting.
enum class ReductionOrder { kAtOnce, kBehindSums };

// For a stage of tensor-parallel units that meets others in collectives: its ranks sum what they compute, and pass on what
// arrives, by collectives of their own, which stand behind the stage's collectives before them. So a step that they meet in waits
// until all of the stage's ranks come to those. kBehindSums is for stages whose gradients have homes.
StageSteps WithRoomForSums(StageSteps stage, ReductionOrder order);

// With whom a rank gathers and reduces which elements of its arrays, by unit; none of one that all have whole.
struct RankElements {
  SliceElements slice;  // of its whole arrays
  std::vector<SharedElements> gathered, reduced;
  // Of several pipelines: of what the group that is the stage's gathers and reduces, where its ranks keep shards.
  int32_t stage_group = -1;
  std::vector<SharedElements> in_turn;
};
// The stage's steps of a rank where somebody has an unlike part of units: its buffers have its slice or its shard of them, and
// what it gathers and reduces of one it does with those who have the same elements.
StageSteps SliceOf(StageSteps stage, const RankElements& rank);

}  // namespace motley::planner
