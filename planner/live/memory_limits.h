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

// Those that are below what they declare, for people; empty: none is.
std::string MemoryLimitsText(const PlannerInput& input);

}  // namespace motley::planner
