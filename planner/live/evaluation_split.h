// Who evaluates which validation samples: by forward speed, within memory.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/live/cost_model.h"
#include "planner/plan/plan.h"

namespace motley::planner {

// Tokens and targets of one sample, which a rank holds for all its samples throughout the pass.
int64_t TokenBytes(const CostModel& cost);

// Microbatches by rank, of the training's size; ranks without training samples take none. RESOURCE_EXHAUSTED: a
// layered pass over so many samples does not fit in what the training step leaves.
absl::StatusOr<std::vector<std::vector<int64_t>>> SplitEvaluation(const Plan& plan, const CostModel& cost, int64_t samples);

}  // namespace motley::planner
