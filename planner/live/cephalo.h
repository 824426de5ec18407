// Cephalo (arXiv 2411.01075): batches by speed, shards by memory headroom. split_problem.h states the problem that is solved
// exactly; this file makes it from the profiles and turns the answer into a plan.
#pragma once

#include "absl/status/statusor.h"
#include "planner/live/cost_model.h"
#include "planner/live/planner.h"
#include "planner/plan/plan.h"
#include "planner/split/split_problem.h"

namespace motley::planner {

// Devices whose memory does not hold context and buffers, and devices without samples whose memory is not needed, stay
// unused with the reason. RESOURCE_EXHAUSTED: nothing fits; says how many bytes are missing, in all and on a device.
absl::StatusOr<Plan> PlanCephalo(const PlannerInput& input, const CostModel& cost);

// Seconds of the objective for this input, 0 when nothing fits: for questions of the kind "what if".
absl::StatusOr<double> SplitSeconds(const PlannerInput& input);

}  // namespace motley::planner
