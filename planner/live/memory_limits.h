// What plans may count on of each device's memory: what it declares or, where a rank on it ran out, what it then turned out to
// have.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/live/live_inputs.h"

namespace motley::planner {

// By device of the input; 0: it has no limit. Devices of one node that declare the same have the least of theirs: they are one
// card, and their ranks are alike.
std::vector<int64_t> MemoryLimits(const PlannerInput& input);

// The limit after `before` (0: there was none), for a device that held `held` bytes when an allocation failed and that the plan
// fills to `peak`. What was held was there; what was asked for besides, nobody knows. A device that held more than the plan's
// peak needs as many times more than plans say, so it gets as many times less. At least 5 % below `before`; 0: not known.
int64_t CorrectedLimit(int64_t before, int64_t held, int64_t peak);

// Those that are below what they declare, for people; empty: none is.
std::string MemoryLimitsText(const PlannerInput& input);

}  // namespace motley::planner
