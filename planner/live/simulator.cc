#include "planner/live/simulator.h"

#include "common/status_macros.h"
#include "planner/live/memory_ledger.h"
#include "planner/live/program_graph.h"

namespace motley::planner {
namespace {

SimulatedRank RankOf(const ProgramGraph& programs, const Timeline& timeline, size_t rank) {
  SimulatedRank result;
  result.spans.reserve(programs.tasks[rank].size());
  for (const int32_t task : programs.tasks[rank]) {
    const TaskSpan& span = timeline.spans[static_cast<size_t>(task)];
    result.spans.push_back({ToSeconds(span.begin), ToSeconds(span.end)});
  }
  const auto busy = [&](LaneKind lane) { return timeline.busy[rank * kLanesPerActor + static_cast<size_t>(lane)]; };
  Picoseconds overhead = 0;
  if (const int32_t task = programs.overhead_tasks[rank]; task >= 0) {
    const TaskSpan& span = timeline.spans[static_cast<size_t>(task)];
    overhead = span.end - span.begin;
  }
  result.busy_seconds = ToSeconds(busy(LaneKind::kCompute) - overhead);
  result.collective_seconds = ToSeconds(busy(LaneKind::kCollective));
  return result;
}

}  // namespace

absl::StatusOr<Simulation> Simulate(const CostModel& cost, const std::vector<UnitPlacement>& placement,
                                    const std::vector<Program>& programs) {
  MOTLEY_ASSIGN_OR_RETURN(const ProgramGraph graph, GraphOfPrograms(cost, placement, programs));
  MOTLEY_ASSIGN_OR_RETURN(const Timeline timeline, Run(graph.graph));
  Simulation simulation;
  simulation.seconds = ToSeconds(timeline.end);
  for (size_t r = 0; r < programs.size(); ++r) {
    SimulatedRank rank = RankOf(graph, timeline, r);
    rank.peak_bytes = FixedBytes(cost, static_cast<int>(r), programs[r]) + StateBytes(cost, OwnedElements(placement, r)) +
                      ActivationPeakBytes(cost, static_cast<int>(r), programs[r]);
    simulation.ranks.push_back(std::move(rank));
  }
  // Every rank takes part in every collective.
  simulation.collective_seconds = simulation.ranks[0].collective_seconds;
  return simulation;
}

}  // namespace motley::planner
