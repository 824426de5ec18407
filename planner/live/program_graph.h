// The engine's programs as a step graph: an actor for each rank, a task for each instruction, one task for a collective of all
// ranks. So that a live job's programs and offline plans are run by one simulator.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/assignment.h"
#include "common/program.h"
#include "planner/live/cost_model.h"
#include "planner/simulator/step_graph.h"

namespace motley::planner {

struct ProgramGraph {
  StepGraph graph;
  std::vector<std::vector<int32_t>> tasks;  // by rank, instruction
  // By rank: the step's overhead on the compute lane, after all instructions; -1 where there is none.
  std::vector<int32_t> overhead_tasks;
};

// Elements of all units that `rank` owns.
int64_t OwnedElements(const std::vector<UnitPlacement>& placement, size_t rank);

// `placement` by unit over the programs' ranks; program r runs on rank r of `cost`; programs have passed Validate. The k-th
// collective of one rank meets the k-th of all others; it lasts what was measured for its bytes and largest share. Compute lasts
// what the profile says.
//
// FAILED_PRECONDITION: collectives that do not match, or a deadlock: names every rank and lane that is stuck, its instruction
// and what it waits for. A graph that is returned runs to its end.
absl::StatusOr<ProgramGraph> GraphOfPrograms(const CostModel& cost, const std::vector<UnitPlacement>& placement,
                                             const std::vector<Program>& programs);

}  // namespace motley::planner
