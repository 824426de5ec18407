// Lowers a plan and simulates it against the profiles: what both the planner's answer and its alternatives go through.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "planner/live/planner.h"
#include "planner/live/simulator.h"
#include "planner/plan/plan.h"

namespace motley::planner {

struct PricedTraining {
  Plan plan;  // predictions filled in
  std::vector<Program> programs;
  Simulation simulation;
};

// The plan's devices must be among the input's, which may hold more. INVALID_ARGUMENT: the plan breaks a rule or names an
// unknown device. RESOURCE_EXHAUSTED: a rank's peak exceeds its usable memory; names device and bytes.
absl::StatusOr<PricedTraining> PriceTraining(const PlannerInput& input, Plan plan);

// The input restricted to the plan's devices, in the plan's order.
absl::StatusOr<PlannerInput> InputOf(const PlannerInput& input, const Plan& plan);

}  // namespace motley::planner
