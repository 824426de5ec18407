#include "planner/split/memory_term.h"

#include <algorithm>
#include <cstddef>

namespace motley::planner {

int64_t PeakOfTerms(const std::vector<MemoryTerm>& terms, int64_t batch, int64_t microbatch) {
  if (batch == 0) return 0;
  const int64_t full = batch / microbatch;
  const size_t m = static_cast<size_t>(microbatch), rest = static_cast<size_t>(batch % microbatch);
  int64_t peak = 0;
  for (const MemoryTerm& term : terms) peak = std::max(peak, full * term.each[m] + term.each[rest] + term.once[m]);
  return peak;
}

}  // namespace motley::planner
