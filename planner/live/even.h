// What fully sharded data parallelism does: equal batches, equal shards, one microbatch size for all.
#pragma once

#include "absl/status/statusor.h"
#include "planner/live/cost_model.h"
#include "planner/live/planner.h"
#include "planner/plan/plan.h"

namespace motley::planner {

// Batches differ by at most one sample. The microbatch is the largest power of two that fits every device; recomputation
// (of all) only when nothing fits without and the job allows it. RESOURCE_EXHAUSTED names the first device that lacks memory.
absl::StatusOr<Plan> PlanEven(const PlannerInput& input, const CostModel& cost);

}  // namespace motley::planner
