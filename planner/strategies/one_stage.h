// Plans of one pipeline of one stage, as the data-parallel strategies make them.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "planner/plan/plan.h"
#include "planner/setting/setting.h"

namespace motley::planner {

// INVALID_ARGUMENT: a pin to a stage that a plan of one stage does not have; names the strategy.
absl::Status CheckOneStage(const Setting& setting, const std::string& strategy);

// All layers in `ministages` of as many layers each as `layers_per_ministage`; devices that the stage does not use are listed
// with `because`, after those that the request excluded.
Plan OneStagePlan(const Setting& setting, const std::string& strategy, ScheduleFamily schedule, int64_t layers_per_ministage,
                  StagePlan stage, const std::string& because);

}  // namespace motley::planner
