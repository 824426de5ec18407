// The validation pass of a job: who computes how many samples, the programs for it, and that they fit beside what stays from
// training. Forward only.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/program/program.h"
#include "planner/plan/plan.h"
#include "planner/setting/setting.h"

namespace motley::planner {

// By rank, with the plan's validation schedule, which is made unless there is one of so many samples. `plan`: evaluated, of one
// pipeline of single devices of the setting. Microbatches are of the training's size; ranks without training samples take none.
// RESOURCE_EXHAUSTED: a layered pass over so many samples does not fit in what the training step leaves.
absl::StatusOr<std::vector<Program>> PlanEvaluation(const Setting& setting, int64_t samples, Plan* plan);

}  // namespace motley::planner
