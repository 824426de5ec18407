// Peak bytes of activations in one rank's program: what docs/design.md lists, walked along the compute lane. Activations are made
// and freed by compute instructions alone, whose order a lane fixes, so the peak needs no clock. The check that what programs do
// is what the memory model (costs/memory_model.h) says of their plan.
#pragma once

#include <cstdint>

#include "common/program/program.h"
#include "planner/costs/costs.h"

namespace motley::planner {

// What `unit` of the program's model is.
UnitKind UnitKindOf(const Program& program, int32_t unit);

// The largest sum of activations, saved tensors and workspace at any instruction, on a device of `kind`.
int64_t ActivationPeakBytes(const Costs& costs, int kind, const Program& program);

}  // namespace motley::planner
