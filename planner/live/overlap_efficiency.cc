#include "planner/live/overlap_efficiency.h"

#include <algorithm>

namespace motley::planner {

// A collective of time T takes `collectives` x T beside compute, which does 1 / `compute` of its work meanwhile: the rest of that
// time is what the collective costs it.
double OverlapEfficiency(const std::vector<Overlap>& overlap) {
  double efficiency = 1;
  for (const Overlap& of_rank : overlap) {
    efficiency = std::min(efficiency, 1 - of_rank.collectives * (1 - 1 / of_rank.compute));
  }
  return std::max(0.0, efficiency);
}

}  // namespace motley::planner
