// A device's peak of activations in closed form, as a maximum of terms
//   sum over microbatches of each(m)  +  once(largest m)
// so that a search can price thousands of splits.
#pragma once

#include <cstdint>
#include <vector>

namespace motley::planner {

struct MemoryTerm {
  std::vector<int64_t> each, once;  // by microbatch size, 0 at size 0
};

// `batch` samples in microbatches of `microbatch`, as a plan has them: all equal, the last may be smaller.
int64_t PeakOfTerms(const std::vector<MemoryTerm>& terms, int64_t batch, int64_t microbatch);

}  // namespace motley::planner
