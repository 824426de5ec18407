// How every strategy's plan begins, and what it says of devices that it does not take.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/setting/setting.h"

namespace motley::planner {

// Says who made it, what for, and what the setting leaves out; no pipelines yet.
Plan BlankPlan(const Setting& setting, const std::string& strategy, ScheduleFamily schedule);

// All the rest at its defaults.
RankPlan RankOn(const Setting& setting, int device);

// The setting's devices that no rank of the plan's is on, each for this reason.
std::vector<UnusedDevice> DevicesBeside(const Setting& setting, const Plan& plan, const std::string& because);

}  // namespace motley::planner
