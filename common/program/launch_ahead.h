// How far a card's lane of computation is launched ahead of the device. The engine keeps to it, and the planner counts the memory
// that it costs.
#pragma once

#include <cstddef>

namespace motley {

// Passes of units (forward, recompute, backward or a half of one) that are launched and not finished. Two wait behind the one
// that runs, so the device has work while the next one is launched: a layer's backward is some 60 launches. What other lanes made
// for these passes is not free before they have passed it.
inline constexpr size_t kMostUnfinishedPasses = 3;

}  // namespace motley
