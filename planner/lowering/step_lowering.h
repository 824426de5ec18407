// Lowers any plan of the language to a step graph: layered, GPipe, 1F1B, interleaved, zero bubble; gathers and reductions of the
// groups by ZeRO stage; all-reduces of tensor-parallel units; activations between stages of different width; offload; gradient
// synchronisation between pipelines; optimizer. docs/simulator.md draws each schedule.
#pragma once

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"
#include "planner/setting/setting.h"
#include "planner/simulator/step_graph.h"

namespace motley::planner {

// `plan` has passed Validate. `actor_of_rank` (may be nullptr) receives, by rank in plan order, the actor that stands for it.
absl::StatusOr<StepGraph> LowerPlan(const Setting& setting, const Plan& plan, std::vector<int>* actor_of_rank);

}  // namespace motley::planner
