// Walks over all stages, units and ranks of a plan, in its order.
#pragma once

#include "planner/plan/plan.h"

namespace motley::planner {

// `P` is Plan or const Plan; `use` takes a StagePlan of the same constness.
template <typename P, typename Function>
void ForEachStage(P& plan, Function use) {
  for (auto& pipeline : plan.pipelines) {
    for (auto& stage : pipeline.stages) use(stage);
  }
}

// The same of its UnitPlans.
template <typename P, typename Function>
void ForEachUnit(P& plan, Function use) {
  ForEachStage(plan, [&use](auto& stage) {
    for (auto& unit : stage.units) use(unit);
  });
}

// The same of its RankPlans.
template <typename P, typename Function>
void ForEachRank(P& plan, Function use) {
  ForEachUnit(plan, [&use](auto& unit) {
    for (auto& rank : unit.ranks) use(rank);
  });
}

}  // namespace motley::planner
