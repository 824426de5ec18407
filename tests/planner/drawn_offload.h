// What ranks of a random plan offload.
#pragma once

#include "planner/plan/plan.h"
#include "planner/plan/plan_engine_limits.h"

namespace motley::planner {

// Kinds by rank, and when units are stepped, where the language and the limits have them. `below(n)`: a number below n.
template <typename Below>
void DrawOffload(const PlanLimits& limits, Below below, Plan* plan) {
  const bool one = plan->pipelines.size() == 1, layered = TraitsOf(plan->schedule).by_ministage;
  const OffloadKinds may = one ? limits.offload : limits.offload.And(limits.with_pipelines);
  const bool steps = one && below(3) == 0 && limits.steps_in_turn;
  plan->optimizer_steps = steps ? OptimizerSteps::kInTurn : OptimizerSteps::kAtEnd;
  for (PipelinePlan& pipeline : plan->pipelines) {
    for (StagePlan& stage : pipeline.stages) {
      const bool in_turn = stage.units.size() > 1 ? stage.zero_stage >= 2 : stage.units[0].ranks.size() == 1;
      const bool leave = one && layered && in_turn && plan->optimizer_steps == OptimizerSteps::kAtEnd;
      for (UnitPlan& unit : stage.units) {
        for (RankPlan& rank : unit.ranks) {
          rank.offload = {.activations = below(2) == 0, .parameters = below(2) == 0, .optimizer = below(2) == 0};
          rank.offload.gradients = leave && rank.offload.optimizer && below(2) == 0;
          rank.offload = rank.offload.And(may);
        }
      }
    }
  }
  for (PipelinePlan& pipeline : plan->pipelines) {
    for (StagePlan& stage : pipeline.stages) stage.prefetch = 1 + below(3);
  }
}

}  // namespace motley::planner
