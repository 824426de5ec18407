// What any plan of the language costs on a setting, coarsely: the programs of its classes of like ranks as a step graph,
// simulated, its memory in closed form. Searches compare with it. What is shown, and what finished plans are compared by, is
// Price's (price.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/program/program.h"
#include "planner/plan/plan.h"
#include "planner/setting/setting.h"
#include "planner/simulator/step_graph.h"

namespace motley::planner {

struct Evaluation {
  Plan plan;  // predictions filled in (lower bound excepted)
  StepGraph graph;
  Timeline timeline;
  // Price's: what its ranks do, and the graph's task of every instruction (-1 = it takes no time).
  std::vector<Program> programs;
  std::vector<std::vector<int32_t>> task_of;
  // A sentence for ranks that lack the same memory: "n1/gpu0 (L4) and 3 more need ... lack ..."; empty: the plan fits.
  std::vector<std::string> does_not_fit;
  int64_t lacking_bytes = 0;  // of the one of those ranks and hosts that lacks most
};

// The plan comes back without replicas where the setting keeps none (PlanRequest).
// INVALID_ARGUMENT: the plan breaks a rule or names a device that the setting does not have. A plan that lacks memory is priced
// all the same and says so in does_not_fit.
absl::StatusOr<Evaluation> Evaluate(const Setting& setting, Plan plan);

// Step seconds in closed form, and the fullest device: for searches. Within a few percent of Evaluate where links are not
// contended (docs/inside/simulator.md has the measured distance). No names are looked up, no graph is made.
struct QuickPrice {
  double step_seconds = 0;
  double worst_memory = 0;  // largest peak / usable; above 1 the plan does not fit
};
absl::StatusOr<QuickPrice> EstimatePlan(const Setting& setting, const Plan& plan);

// Seconds below which no plan of the language can come on this setting, with what decides. docs/inside/lower-bound.md.
struct LowerBound {
  double seconds = 0;
  std::string because;
};
LowerBound FindLowerBound(const Setting& setting);

}  // namespace motley::planner
