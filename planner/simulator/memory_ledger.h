// Peak bytes of one rank: what docs/design.md lists, walked along the compute lane. Activations are made and freed by
// compute instructions alone, whose order a lane fixes, so the peak needs no clock.
#pragma once

#include <cstdint>
#include <vector>

#include "common/program.h"
#include "planner/simulator/cost_model.h"

namespace motley::planner {

// Training state of one element in units of the element's size: parameter, gradient, two moments.
inline constexpr int64_t kStateTensors = 4;

// Everything that does not depend on the samples: context and declared buffers. Without the owned shard.
int64_t FixedBytes(const CostModel& cost, int rank, const Program& program);
int64_t StateBytes(const CostModel& cost, int64_t owned_elements);

// The largest sum of activations, saved tensors and workspace at any instruction.
int64_t ActivationPeakBytes(const CostModel& cost, int rank, const Program& program);

// The same number for a training step in closed form, as a maximum of terms
//   sum over microbatches of each(m)  +  once(largest m)
// so that a search can price thousands of splits. Terms: the turn at the head, the first layer backward, the embedding.
struct MemoryTerm {
  std::vector<int64_t> each, once;  // by microbatch size, 0 at size 0
};
std::vector<MemoryTerm> LayeredMemoryTerms(const CostModel& cost, int rank, bool recompute, int64_t largest_microbatch);
// `microbatches` as a plan has them: all equal, the last may be smaller.
int64_t PeakOfTerms(const std::vector<MemoryTerm>& terms, int64_t batch, int64_t microbatch);

}  // namespace motley::planner
