// Plans of tests with their schedules, and what follows from them.
#pragma once

#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/status_macros.h"
#include "common/program/program.h"
#include "planner/lowering/program_writer.h"
#include "planner/plan/plan.h"
#include "planner/pricing/placed_schedule.h"
#include "planner/scheduling/make_schedule.h"
#include "planner/setting/setting.h"

namespace motley::planner {

inline absl::StatusOr<std::vector<Program>> ScheduleAndLower(const Setting& setting, Plan plan) {
  MOTLEY_RETURN_IF_ERROR(ValidateForEngine(plan, setting.workload.model));
  MOTLEY_ASSIGN_OR_RETURN(plan.training, PlacedSchedule(setting, plan));
  return LowerTraining(setting, plan);
}

// `microbatches`: of the validation pass, by rank.
inline absl::StatusOr<std::vector<Program>> ScheduleAndLowerEvaluation(const Setting& setting, Plan plan,
                                                                       const std::vector<std::vector<int64_t>>& microbatches) {
  MOTLEY_ASSIGN_OR_RETURN(plan.validation, MakeValidationSchedule(setting, plan, microbatches));
  return LowerEvaluation(setting, plan);
}

}  // namespace motley::planner
