// A job that cannot go on, because its devices or their hosts run out of memory with every plan: what would need less.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/base/memory_shortage.h"
#include "planner/live/live_inputs.h"

namespace motley::planner {

// RESOURCE_EXHAUSTED: `why`, with the ways out (ways_out.h). By the planner's own count the job fits, so the ways are those of
// devices that hold so little that it does not; where hosts ran out, those of devices whose hosts keep nothing.
absl::Status RanOut(const PlannerInput& input, const std::string& why, MemoryTier tier = MemoryTier::kDevice);

}  // namespace motley::planner
