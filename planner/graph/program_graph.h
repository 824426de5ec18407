// Programs as a step graph: what they do, instruction by instruction, at the rates of program_rates.h. Of ranks' programs it is
// what a job's prediction, trace and watch limit rest on; of classes' (class_programs.h), which merge like ranks, what searches
// compare.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "common/program/program.h"
#include "planner/lowering/class_programs.h"
#include "planner/setting/setting.h"
#include "planner/simulator/step_graph.h"
#include "planner/view/plan_view.h"
#include "planner/view/resolved_plan.h"

namespace motley::planner {

struct ProgramGraph {
  StepGraph graph;
  std::vector<std::vector<int32_t>> task_of;  // by rank and instruction; -1 = it takes no time
};

// An actor a rank, in the plan's order. A hand-over takes its sender's and its receiver's lane; what takes no time (`release`,
// `zero_grad`) is no task. `programs`: of the plan (program_writer.h), whose ownership says what collectives move and optimizers
// step. Errors of WalkPrograms.
absl::StatusOr<ProgramGraph> GraphOfPrograms(const Setting& setting, const ResolvedPlan& resolved,
                                             const std::vector<Program>& programs);

// An actor a class. What is of some of a class's units does not keep the others waiting: a hand-over takes the lane of a class
// all of whose units take part, else it waits for these units' last one. `classes`: of `view`. Errors of WalkPrograms.
absl::StatusOr<StepGraph> GraphOfClasses(const Setting& setting, const PlanView& view, const ClassPrograms& classes);

}  // namespace motley::planner
