// Walks over all units and ranks of a plan: pipelines, stages and units in their order.
#pragma once

#include "planner/plan/plan.h"

namespace motley::planner {

// `P` is Plan or const Plan; `use` takes a UnitPlan of the same constness.
template <typename P, typename Function>
void ForEachUnit(P& plan, Function use) {
  for (auto& pipeline : plan.pipelines) {
    for (auto& stage : pipeline.stages) {
      for (auto& unit : stage.units) use(unit);
    }
  }
}

// The same of its RankPlans.
template <typename P, typename Function>
void ForEachRank(P& plan, Function use) {
  ForEachUnit(plan, [&use](auto& unit) {
    for (auto& rank : unit.ranks) use(rank);
  });
}

}  // namespace motley::planner
