// How every strategy's plan begins.
#pragma once

#include <string>

#include "planner/plan/plan.h"
#include "planner/setting/setting.h"

namespace motley::planner {

// Says who made it and what for; no pipelines, no unused devices yet.
Plan BlankPlan(const Setting& setting, const std::string& strategy, ScheduleFamily schedule);

}  // namespace motley::planner
