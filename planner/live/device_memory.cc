#include "planner/live/device_memory.h"

#include "planner/live/layered.h"
#include "planner/live/memory_ledger.h"

namespace motley::planner {

int64_t FixedBytes(const CostModel& cost, int rank) {
  return cost.ContextBytes(rank) + BuffersOf(cost.model(), cost.layout()).total() * cost.element_bytes();
}

int64_t FreeBytes(const CostModel& cost, int rank) {
  const int64_t rounding = StateBytes(cost, static_cast<int64_t>(cost.layout().size()));
  return cost.UsableBytes(rank) - FixedBytes(cost, rank) - rounding;
}

int64_t TotalStateBytes(const CostModel& cost) { return StateBytes(cost, cost.num_parameters()); }

}  // namespace motley::planner
