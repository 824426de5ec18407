// The training schedule that a plan is priced and run with.
#pragma once

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"
#include "planner/plan/schedule.h"
#include "planner/setting/setting.h"

namespace motley::planner {

// MakeTrainingSchedule's. Sums between pipelines that stand before what a stage gathers in turn hide behind its compute, and keep
// it waiting for the slowest pipeline: where stages have sums of their own besides, both places are priced, and the step's
// shorter one is taken. Errors of MakeTrainingSchedule.
absl::StatusOr<Schedule> PlacedSchedule(const Setting& setting, const Plan& plan);

}  // namespace motley::planner
