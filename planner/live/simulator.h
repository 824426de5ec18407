// Runs all ranks' programs in virtual time: they are made a step graph (program_graph.h), which step_graph.h's Run runs. The
// engine walks the same programs with real tensors.
//
// An instruction starts when its lane is free and all of `after` have finished. A collective starts when every rank has
// reached it and lasts what was measured for its bytes and skew; the k-th collective of one rank meets the k-th of all others.
// Pure and deterministic; times are whole picoseconds.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/assignment.h"
#include "common/program.h"
#include "planner/live/cost_model.h"

namespace motley::planner {

struct SimulatedSpan {
  double begin_seconds = 0, end_seconds = 0;
};
struct SimulatedRank {
  std::vector<SimulatedSpan> spans;  // by instruction
  double busy_seconds = 0;           // compute lane
  double collective_seconds = 0;     // collective lane, waiting for others not counted
  int64_t peak_bytes = 0;
};
struct Simulation {
  double seconds = 0;  // of the whole step, overhead included
  double collective_seconds = 0;
  std::vector<SimulatedRank> ranks;
};

// `placement` by unit over the programs' ranks; program r runs on rank r of `cost`. FAILED_PRECONDITION: a deadlock, or
// collectives that do not match: names every rank that is stuck, its instruction and what it waits for.
absl::StatusOr<Simulation> Simulate(const CostModel& cost, const std::vector<UnitPlacement>& placement,
                                    const std::vector<Program>& programs);

}  // namespace motley::planner
