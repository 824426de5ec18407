// Lowers any plan of the language to a step graph: layered, GPipe, 1F1B, interleaved, zero bubble; gathers and reductions of the
// groups by ZeRO stage; all-reduces of tensor-parallel units; activations between stages of different width; offload; gradient
// synchronisation between pipelines; optimizer. docs/simulator.md draws each schedule.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/lowering/step_lowering_view.h"
#include "planner/setting/setting.h"
#include "planner/simulator/step_graph.h"

namespace motley::planner {

// A plan as a graph, with what the ledger wants to know of the order.
struct LoweredPlan {
  StepGraph graph;
  std::vector<int64_t> in_flight;  // by actor: most forwards of a chunk that waited for their backward
};

// `view`: of a plan that has passed Validate.
LoweredPlan Lower(const Setting& setting, const PlanView& view);

}  // namespace motley::planner
