// What a compute instruction of a program costs one rank: seconds, and the tensor-parallel sums inside it. Part of the programs'
// graph (program_graph.h).
#pragma once

#include <cstdint>

#include "common/program/program.h"
#include "planner/costs/costs.h"
#include "planner/simulator/step_graph.h"

namespace motley::planner {

// What an operation computes.
constexpr TaskKind PassOf(const Forward&) { return TaskKind::kForward; }
constexpr TaskKind PassOf(const Recompute&) { return TaskKind::kRecompute; }
constexpr TaskKind PassOf(const Backward&) { return TaskKind::kBackward; }
constexpr TaskKind PassOf(const BackwardInput&) { return TaskKind::kBackwardInput; }
constexpr TaskKind PassOf(const BackwardWeight&) { return TaskKind::kBackwardWeight; }

// What the operation says beside its units and microbatches.
struct ComputeWork {
  TaskKind pass = TaskKind::kForward;
  UnitSegment segment = UnitSegment::kWhole;
  uint32_t operators = 0;
};

// Of a device of `kind` that computes `tp_share` of one unit for so many samples.
double ComputeSeconds(const Costs& costs, int kind, double tp_share, const ComputeWork& work, UnitKind unit, double samples);

// All-reduces of a microbatch's activations inside a whole unit: two a layer forward and two backward (Megatron-LM section 3),
// one for a vocabulary-parallel embedding and one for the head's input gradient; recomputing an operator that ends in one repeats
// it.
int SumsInside(const ComputeWork& work, UnitKind unit);

}  // namespace motley::planner
