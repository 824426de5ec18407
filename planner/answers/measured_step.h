// A step as the ranks measured it beside the step as it was simulated: one graph, two timelines, and where they differ.
// docs/use/timelines.md
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/program/program.h"
#include "planner/graph/program_spans.h"
#include "planner/plan/plan.h"
#include "planner/setting/setting.h"
#include "planner/simulator/step_graph.h"

namespace motley::planner {

// Seconds of one device in the step, in all.
struct StepDifference {
  DeviceId device;
  std::string what;  // "forward", "receives", "waits: bubble"
  double measured_seconds = 0, simulated_seconds = 0;
  double difference() const { return measured_seconds - simulated_seconds; }
};

struct MeasuredStep {
  StepGraph graph;  // of the programs
  Timeline measured, simulated;
  std::vector<LaneSeconds> measured_lanes, simulated_lanes;  // by rank
  std::vector<StepDifference> differences;                   // of all devices, the largest first
};

// `programs`: of `plan`, by rank; `spans`: since the begin of each rank's own step, whose length `step_seconds` has. Ranks'
// clocks are laid together where every step ends: all ranks leave the exchange of scalars at the same time, but for a link's
// latency. INVALID_ARGUMENT: spans that are not of the programs. Errors of GraphOfPrograms.
absl::StatusOr<MeasuredStep> CompareStep(const Setting& setting, const Plan& plan, const std::vector<Program>& programs,
                                         RankSpans spans, const std::vector<double>& step_seconds);

}  // namespace motley::planner
