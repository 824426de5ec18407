// Hill climbing from a plan: the best neighbour by the estimator that the simulator confirms; where none is better, two moves at
// once; until that does not help either or the budget is spent. Deterministic. Complexity: neighbours x estimate, a handful of
// simulations a round.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "planner/plan/plan.h"
#include "planner/pricing/evaluate.h"
#include "planner/search/seen_plans.h"
#include "planner/setting/setting.h"

namespace motley::planner {

// On a small machine: a budget is of one of them.
inline constexpr int64_t kClimbersAtOnce = 2;

// A node is about a microsecond of search on one core: counted, not timed, so that the same files give the same plan.
inline int64_t EstimateNodes(const Setting& setting) { return 10 + setting.num_devices(); }  // a neighbour made and estimated
inline constexpr int64_t kGroupNodes = 1000;                                                 // an exact split of a group
struct SearchBudget {
  int64_t nodes = 0;  // still allowed
  absl::Time deadline = absl::InfiniteFuture();
  bool stopped_by_clock = false;
  // Takes `count` nodes; false when the search must end.
  bool Spend(int64_t count);
  // A simulation that was made: a node for each of its tasks. False when it was the last one.
  bool Charge(const Evaluation& evaluation) { return ChargeTasks(evaluation.graph.tasks.size()); }
  bool ChargeTasks(size_t tasks) { return Spend(static_cast<int64_t>(tasks) + 50); }
};
SearchBudget BudgetOf(const PlanRequest& request);

// What simulates a plan: Evaluate, or what counts as it does.
using PricePlan = absl::StatusOr<Evaluation>(const Setting& setting, Plan plan);

// Ranks that lack memory recompute one operator more, until all fit or none can.
absl::StatusOr<Evaluation> Repair(const Setting& setting, Plan plan, SearchBudget* budget, PricePlan& price);

// The evaluation of the best plan found, at worst of `plan` itself. A plan that does not fit is improved towards fitting first.
// `seen`: what climbers of the setting have in common, by one `price`; what it knows costs the same budget.
absl::StatusOr<Evaluation> Polish(const Setting& setting, Plan plan, SearchBudget* budget, SeenPlans* seen = nullptr,
                                  PricePlan& price = Evaluate);

}  // namespace motley::planner
