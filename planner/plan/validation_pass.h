// The validation pass of a plan: the same devices and layers, other samples, forward only.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/plan/schedule.h"

namespace motley::planner {

// The plan, layered, with `microbatches` by unit in its order; without schedules.
Plan ValidationPass(Plan plan, const std::vector<std::vector<int64_t>>& microbatches);

// Those that a validation schedule deals, by unit in the plan's order.
std::vector<std::vector<int64_t>> MicrobatchesOf(const Schedule& schedule);

}  // namespace motley::planner
