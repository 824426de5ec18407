// The program writer's passes over the steps of one stage: pure functions, each after the one above.
#pragma once

#include "planner/lowering/stage_steps.h"
#include "planner/plan/schedule.h"

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

// For a stage with tensor-parallel units: their ranks pass on what arrives by a collective of their own, which no collective of
// the stage may keep waiting. So a step that something may arrive for waits until the stage's collectives before it can go, and
// sums that no buffer waits for follow the last such step.
StageSteps WithRoomForBroadcasts(StageSteps stage, const StageTraits& traits);

// The stage's steps of a rank that computes `tp_share` of each unit: its buffers have a slice of the units. `group` (-1 = the
// stage's): the ranks that hold the same slice.
StageSteps SliceOf(StageSteps stage, double tp_share, int32_t group);

}  // namespace motley::planner
