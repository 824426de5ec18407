// In which order ranks run collectives of rings that have some ranks in common. Pure.
#pragma once

#include <cstdint>
#include <vector>

namespace motley::planner {

struct RingTask {
  int32_t group = 0;     // of the ring's ranks
  int64_t elements = 0;  // what it takes, in the order's clock
};

// The tasks' indices. One order for all ranks, of which each runs its own one after the other, so that none waits for another in
// a circle. Where rings are a chain in which neighbours share a rank, the tasks' own order would run them strictly one behind the
// other; here a task stands where all of its ranks are free first (a list schedule; ties: the tasks' own order).
std::vector<int32_t> RingOrder(const std::vector<RingTask>& tasks, const std::vector<std::vector<int32_t>>& groups);

}  // namespace motley::planner
