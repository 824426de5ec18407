// How full a plan's fullest device is.
#pragma once

#include "planner/plan/plan.h"
#include "planner/setting/setting.h"

namespace motley::planner {

// Largest peak / usable of the plan's ranks. Devices that the setting does not have are passed over.
double WorstMemory(const Setting& setting, const Plan& plan);

}  // namespace motley::planner
