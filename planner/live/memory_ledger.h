// Peak bytes of one rank: what docs/design.md lists, walked along the compute lane. Activations are made and freed by
// compute instructions alone, whose order a lane fixes, so the peak needs no clock.
#pragma once

#include <cstdint>
#include <vector>

#include "common/program.h"
#include "planner/live/cost_model.h"
#include "planner/split/memory_term.h"

namespace motley::planner {

// Training state of one element in units of the element's size: parameter, gradient, two moments.
inline constexpr int64_t kStateTensors = 4;

// Everything that does not depend on the samples: context and declared buffers. Without the owned shard.
int64_t FixedBytes(const CostModel& cost, int rank, const Program& program);
int64_t StateBytes(const CostModel& cost, int64_t owned_elements);

// The largest sum of activations, saved tensors and workspace at any instruction.
int64_t ActivationPeakBytes(const CostModel& cost, int rank, const Program& program);

// The same number for a training step in closed form: the turn at the head, the first layer backward, the embedding.
std::vector<MemoryTerm> LayeredMemoryTerms(const CostModel& cost, int rank, bool recompute, int64_t largest_microbatch);

}  // namespace motley::planner
