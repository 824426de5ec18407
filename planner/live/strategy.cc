#include "planner/live/strategy.h"

#include "absl/strings/str_cat.h"
#include "planner/live/cephalo.h"
#include "planner/live/even.h"

namespace motley::planner {

const std::vector<Strategy>& Strategies() {
  static const std::vector<Strategy> strategies = {
      {"cephalo", "uneven batches by speed, uneven shards by memory, exact", &PlanCephalo},
      {"even", "equal batches and shards, as FSDP does", &PlanEven},
  };
  return strategies;
}

absl::StatusOr<Strategy> FindStrategy(std::string_view name) {
  std::string known;
  for (const Strategy& strategy : Strategies()) {
    if (strategy.name == name) return strategy;
    absl::StrAppend(&known, known.empty() ? "" : ", ", std::string(strategy.name));
  }
  return absl::InvalidArgumentError(absl::StrCat("planner.strategy: '", std::string(name), "' is not known; use one of ", known));
}

}  // namespace motley::planner
