// Peak bytes of activations in one rank's program: what docs/inside/design.md lists, walked along the compute lane. Activations
// are made and freed by compute instructions, whose order a lane fixes, so the peak needs no clock; hand-overs and copies to host
// memory count where the text has them. Answers show this; searches ask a closed form (costs/engine_memory.h).
#pragma once

#include <cstdint>
#include <span>

#include "common/base/memory_by_purpose.h"
#include "common/model/model_slice.h"
#include "common/program/program.h"
#include "planner/costs/costs.h"
#include "planner/plan/op_set.h"

namespace motley::planner {

// What `unit` of the program's model is.
UnitKind UnitKindOf(const Program& program, int32_t unit);

// The operators of a `forward` or `recompute`: 0 means all.
OpSet OperatorSet(uint32_t operators);

// Activations at one moment.
struct ActivationBytes {
  int64_t boundaries = 0;  // activations between units and their gradients, kept or handed over
  int64_t saved = 0;       // operators' saved tensors
  int64_t workspace = 0;
  int64_t total() const { return boundaries + saved + workspace; }
};

// The fullest moment at any instruction, on a device of `kind`. `slice`: of each unit that the rank computes. Counted as a card
// does: a hand-over has its room from when nothing that its lane waits for is left to be issued. Tokens and targets, which lie
// there all step, are not counted, nor are slots. `most`: of each part of it its own fullest moment; may be null.
ActivationBytes PeakActivations(const Costs& costs, int kind, const Program& program, const ModelSlice& slice = {},
                                ActivationBytes* most = nullptr);

// What a rank keeps in host memory, as the engine lays it out (common/program/host_slots.h, host_state.h). Where an area is no
// whole number of cache lines, what it is filled up with counts with the last of what is in it. `owned`: elements that the rank
// owns, by unit of the model.
HostMemoryByPurpose HostBytes(const Costs& costs, const Program& program, std::span<const int64_t> owned);

// Of the program's slots, which are on the device all step.
int64_t SlotBytes(const Program& program);

// Of the buffers that the program declares those that are no unit's home: what units are assembled in beside the rank's state.
int64_t GatheredBytes(const Costs& costs, const Program& program);

}  // namespace motley::planner
