// A rank's training state in closed form, part of engine_memory.h: what is on the device between uses, the buffers that
// parameters and gradients come into, slots for the optimizer, and what waits in host memory. Pure, thread-safe, no allocation.
#pragma once

#include <cstdint>

#include "planner/costs/costs.h"
#include "planner/costs/memory_model.h"

namespace motley::planner {

// Whether the stage's ranks gather a unit at a time, which all microbatches pass before the next.
bool GathersByUnit(const RankDuty& duty);

// `rounds`: microbatches of the rank of the stage that has most.
void AddEngineState(const Costs& costs, const RankDuty& duty, int64_t rounds, MemoryByPurpose* memory);

}  // namespace motley::planner
