// A walk over all ranks of a plan, pipelines, stages and units in their order.
#pragma once

#include "planner/plan/plan.h"

namespace motley::planner {

// `P` is Plan or const Plan; `use` takes a RankPlan of the same constness.
template <typename P, typename Function>
void ForEachRank(P& plan, Function use) {
  for (auto& pipeline : plan.pipelines) {
    for (auto& stage : pipeline.stages) {
      for (auto& unit : stage.units) {
        for (auto& rank : unit.ranks) use(rank);
      }
    }
  }
}

}  // namespace motley::planner
