// A job that cannot go on, because its devices run out of memory with every plan: what would need less.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "planner/live/live_inputs.h"

namespace motley::planner {

// RESOURCE_EXHAUSTED: `why`, with the ways out (ways_out.h). By the planner's own count the job fits, so the ways are those of
// devices that hold so little that it does not.
absl::Status RanOut(const PlannerInput& input, const std::string& why);

}  // namespace motley::planner
