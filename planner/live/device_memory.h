// What a device can offer to activations and training state, and the sentences about what is missing.
#pragma once

#include <cstdint>

#include "planner/live/cost_model.h"

namespace motley::planner {

// Context and the program's buffers.
int64_t FixedBytes(const CostModel& cost, int rank);
// Usable less fixed, less the rounding of shares to whole elements. Negative: the device cannot take part at all.
int64_t FreeBytes(const CostModel& cost, int rank);
// The whole model's training state.
int64_t TotalStateBytes(const CostModel& cost);

}  // namespace motley::planner
