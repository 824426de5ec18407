// Whether a schedule does what its plan says.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "planner/plan/plan.h"
#include "planner/plan/schedule.h"
#include "planner/plan/schedule_walk.h"

namespace motley::planner {

// `training`: else the validation pass, forward only, whose samples are its own. INVALID_ARGUMENT names pipeline, stage and rule:
// virtual stages that are not the plan's; members that do not have the plan's microbatches, or samples that a stage has twice or
// not at all; a round that a member has two microbatches in; an action of another stage's virtual stage, in rounds that are not
// there, twice, never, or before what it needs; members that would wait for each other (which, before which actions).
// Each with the remedy: a plan without schedules gets new ones.
absl::Status ValidateSchedule(const Plan& plan, const Schedule& schedule, bool training);

// Who is stuck, before what: "a/gpu0 before 0B3, b/gpu0 before 1F0".
std::string WaitsText(const PipelinePlan& plan, const PipelineSchedule& schedule, const PipelineWalk& walk);

}  // namespace motley::planner
