// Somebody's plan, priced on a setting: `motley simulate`.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"
#include "planner/pricing/evaluate.h"
#include "planner/setting/setting.h"

namespace motley::planner {

struct GivenPlan {
  Evaluation evaluation;  // lower bound filled in where the plan computes the setting's batch
  LowerBound bound;
  // The plan was made for another cluster, or for other cards under the same names: priced all the same.
  std::vector<std::string> warnings;
  std::vector<std::string> broken;  // rules that the plan breaks, and what was priced instead; empty: a valid plan
};

// What a plan written by hand may leave out: names, batch, sequence, and the layers of a single stage.
struct PlanDefaults {
  int64_t num_layers = 0, global_batch = 0, seq_len = 0;
};
void FillIn(const PlanDefaults& defaults, Plan* plan);

// Sums that do not add up (global batch, shard ratios, tensor-parallel shares) are mended for the price and listed as broken.
// INVALID_ARGUMENT: a rule without which there is nothing to price, a device that the cluster does not have, a sequence or
// precision that is not the setting's.
absl::StatusOr<GivenPlan> PriceGivenPlan(const Setting& setting, Plan plan);

}  // namespace motley::planner
