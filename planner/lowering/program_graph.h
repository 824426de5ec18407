// Programs as a step graph: what the ranks will do, instruction by instruction, priced with the costs and links of the plan's own
// graph (step_lowering.h). That graph merges like ranks and takes a ministage as one task, for searches; this one is what a job's
// prediction, trace and watch limit rest on.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "common/program/program.h"
#include "planner/plan/plan.h"
#include "planner/setting/setting.h"
#include "planner/simulator/step_graph.h"

namespace motley::planner {

struct ProgramGraph {
  StepGraph graph;
  std::vector<std::vector<int32_t>> task_of;  // by rank and instruction; -1 = it takes no time
};

// An actor a rank, in the plan's order. A hand-over takes its sender's and its receiver's lane; what takes no time (`release`,
// `zero_grad`) is no task. `programs`: of `plan` (program_writer.h), whose ownership says what collectives move and optimizers
// step. Errors of WalkPrograms.
absl::StatusOr<ProgramGraph> GraphOfPrograms(const Setting& setting, const Plan& plan, const std::vector<Program>& programs);

}  // namespace motley::planner
