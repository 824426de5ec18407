// auto's pipelines that run forward and backward in turn: which groups, units, microbatches and microbatches in flight.
#pragma once

#include <string>
#include <vector>

#include "planner/groups/groupings.h"
#include "planner/plan/plan.h"
#include "planner/search/polish.h"
#include "planner/setting/setting.h"

namespace motley::planner {

struct TurnPlan {
  std::string origin;  // "1F1B over nodes merged by rate, 16 microbatches"
  Plan plan;
  double seconds = 0;  // by the estimator; the plan fits by it
};

// Three rounds of PlanTurns and the estimator: every grouping with every tensor-parallel degree at one middling number of
// microbatches; the best of them with all numbers of microbatches (powers of two), in flight, orders and schedules; the best of
// those with other groups (regroup.h). The best of each grouping and degree and what came of regrouping, best first, at most
// `count`.
std::vector<TurnPlan> FindTurnPlans(const Setting& setting, const std::vector<Grouping>& groupings, size_t count,
                                    SearchBudget* budget);

// Seconds by the estimator of the best that the first round finds, the best `varied` of it varied as in the second one: a look at
// what these groupings can come to. Infinite: nothing fits.
double LookAtTurns(const Setting& setting, const std::vector<Grouping>& groupings, size_t varied);

}  // namespace motley::planner
