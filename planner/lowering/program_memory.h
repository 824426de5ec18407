// Peak bytes of activations in one rank's program: what docs/design.md lists, walked along the compute lane. Activations are made
// and freed by compute instructions, whose order a lane fixes, so the peak needs no clock; hand-overs and copies to host memory
// count where the text has them. The check that what programs do is what the memory model (costs/memory_model.h) says of their
// plan.
#pragma once

#include <cstdint>

#include "common/program/program.h"
#include "planner/costs/costs.h"
#include "planner/plan/op_set.h"

namespace motley::planner {

// What `unit` of the program's model is.
UnitKind UnitKindOf(const Program& program, int32_t unit);

// The operators of a `forward` or `recompute`: 0 means all.
OpSet OperatorSet(uint32_t operators);

// The largest sum of activations, saved tensors and workspace at any instruction, on a device of `kind`.
// `tp_share`: the part of each unit's heads and columns that the rank computes.
int64_t ActivationPeakBytes(const Costs& costs, int kind, const Program& program, double tp_share = 1);

}  // namespace motley::planner
