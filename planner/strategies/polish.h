// Hill climbing from a plan: the best neighbour by the estimator that the simulator confirms, until none is better or the budget is
// spent. Deterministic. Complexity: neighbours x (estimate), a handful of simulations a round.
#pragma once

#include "absl/status/statusor.h"
#include "planner/evaluate.h"
#include "planner/plan.h"
#include "planner/setting.h"

namespace motley::planner {

struct SearchBudget {
  int64_t nodes = 0;              // estimates and simulations still allowed; the latter count ten
  absl::Time deadline = absl::InfiniteFuture();
  bool stopped_by_clock = false;
  // Takes `count` nodes; false when the search must end.
  bool Spend(int64_t count);
};
SearchBudget BudgetOf(const PlanRequest& request);

// The evaluation of the best plan found, at worst of `plan` itself. A plan that does not fit is improved towards fitting first.
absl::StatusOr<Evaluation> Polish(const Setting& setting, Plan plan, SearchBudget* budget);

}  // namespace motley::planner
