// The table of strategies: each turns devices, profiles and a job into a plan. A new strategy is one file pair and one line.
#pragma once

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/live/cost_model.h"
#include "planner/live/planner.h"
#include "planner/plan/plan.h"

namespace motley::planner {

// `cost` is of `input`. RESOURCE_EXHAUSTED: no plan fits; names a device and the missing bytes.
using StrategyFunction = absl::StatusOr<Plan> (*)(const PlannerInput& input, const CostModel& cost);

struct Strategy {
  std::string_view name;
  std::string_view what;
  StrategyFunction plan;
};

const std::vector<Strategy>& Strategies();
// INVALID_ARGUMENT names the known ones.
absl::StatusOr<Strategy> FindStrategy(std::string_view name);

}  // namespace motley::planner
