// Why this plan: what binds it, what else was possible, what more hardware would give.
#pragma once

#include <string>
#include <vector>

#include "planner/live/planner.h"
#include "planner/live/simulator.h"
#include "planner/plan/plan.h"

namespace motley::planner {

// From the simulated step: the lane that is busiest. "compute of n1/gpu0", "all-gather", "reduce-scatter".
std::string BusiestLane(const Plan& plan, const std::vector<Program>& programs, const Simulation& simulation);

// Other strategies and recomputation policies, and each kind of device left out, simulated; `plan` is for comparison.
std::vector<Alternative> FindAlternatives(const PlannerInput& input, const Plan& plan);

// One kind of device with more memory, or once more: the objective's gain, 0.19 = 19 % faster.
struct WhatIf {
  std::string what;
  double gain = 0;
};
struct Sensitivity {
  std::vector<WhatIf> more_memory, more_devices;
  // The device whose memory binds: with twice its memory the step would be at least 2 % faster; empty when none does.
  std::string memory_bound_device;
};
Sensitivity FindSensitivity(const PlannerInput& input);

std::string ExplanationText(const Plan& plan, const std::vector<Alternative>& alternatives, const Sensitivity& sensitivity);

}  // namespace motley::planner
