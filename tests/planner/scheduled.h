// Plans of tests with their schedules, and what follows from them.
#pragma once

#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/status_macros.h"
#include "common/program/program.h"
#include "planner/graph/program_graph.h"
#include "planner/lowering/program_writer.h"
#include "planner/plan/plan.h"
#include "planner/pricing/simulated_programs.h"
#include "planner/scheduling/make_schedule.h"
#include "planner/setting/setting.h"
#include "planner/view/resolved_plan.h"

namespace motley::planner {

inline absl::StatusOr<Schedule> MakeTrainingSchedule(const Setting& setting, const Plan& plan) {
  MOTLEY_ASSIGN_OR_RETURN(const PlanView view, ViewOf(setting, plan, {.merge = false}));
  MOTLEY_ASSIGN_OR_RETURN(WalkedSchedule walked, MakeTrainingSchedule(view, plan));
  return std::move(walked.schedule);
}

// With sums between pipelines where they are best.
inline absl::StatusOr<Schedule> PlacedSchedule(const Setting& setting, const Plan& plan) {
  MOTLEY_ASSIGN_OR_RETURN(const ResolvedPlan resolved, Resolve(setting, plan));
  MOTLEY_ASSIGN_OR_RETURN(SimulatedPrograms simulated, SimulatePrograms(setting, resolved));
  return std::move(simulated.written.schedule);
}

// `plan` has its schedule.
inline absl::StatusOr<std::vector<Program>> LowerTraining(const Setting& setting, const Plan& plan) {
  MOTLEY_RETURN_IF_ERROR(Validate(plan, setting.workload.model));
  MOTLEY_ASSIGN_OR_RETURN(const ResolvedPlan resolved, Resolve(setting, plan));
  return LowerTraining(setting, resolved, *plan.training, WalkedTraining(plan).walks);
}

inline absl::StatusOr<ProgramGraph> GraphOfPrograms(const Setting& setting, const Plan& plan,
                                                    const std::vector<Program>& programs) {
  MOTLEY_ASSIGN_OR_RETURN(const ResolvedPlan resolved, Resolve(setting, plan));
  return GraphOfPrograms(setting, resolved, programs);
}

inline absl::StatusOr<std::vector<Program>> ScheduleAndLower(const Setting& setting, Plan plan) {
  MOTLEY_RETURN_IF_ERROR(ValidateForEngine(plan, setting.workload.model));
  MOTLEY_ASSIGN_OR_RETURN(const ResolvedPlan resolved, Resolve(setting, plan));
  MOTLEY_ASSIGN_OR_RETURN(SimulatedPrograms simulated, SimulatePrograms(setting, resolved));
  return std::move(simulated.written.programs);
}

// `microbatches`: of the validation pass, by rank.
inline absl::StatusOr<std::vector<Program>> ScheduleAndLowerEvaluation(const Setting& setting, Plan plan,
                                                                       const std::vector<std::vector<int64_t>>& microbatches) {
  MOTLEY_ASSIGN_OR_RETURN(plan.validation, MakeValidationSchedule(setting, plan, microbatches));
  return LowerEvaluation(setting, plan);
}

}  // namespace motley::planner
