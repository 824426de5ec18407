// A plan's step as its ranks run it: their programs, simulated.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "common/program/program.h"
#include "planner/graph/program_graph.h"
#include "planner/plan/schedule.h"
#include "planner/setting/setting.h"
#include "planner/simulator/step_graph.h"
#include "planner/view/resolved_plan.h"

namespace motley::planner {

struct WrittenPrograms {
  Schedule schedule;
  std::vector<Program> programs;
};
// With the plan's training schedule, else with one made for it. `resolved`: of a plan with its owned ranges. Errors of
// MakeTrainingSchedule and LowerTraining, whose `asked` it is.
absl::StatusOr<WrittenPrograms> WritePrograms(const Setting& setting, const ResolvedPlan& resolved,
                                              const std::vector<bool>& asked = {});

struct SimulatedPrograms {
  WrittenPrograms written;
  ProgramGraph priced;
  Timeline timeline;  // of its graph
};

// The same programs, but for one thing. Sums between pipelines that stand before what a stage gathers in turn hide behind its
// compute, and keep it waiting for the slowest pipeline: where a schedule is made and stages have sums of their own besides, both
// places are tried, and the step's shorter one is taken. Errors of WritePrograms, GraphOfPrograms and Run.
absl::StatusOr<SimulatedPrograms> SimulatePrograms(const Setting& setting, const ResolvedPlan& resolved);

}  // namespace motley::planner
