// Whether the engine runs a plan.
#pragma once

#include "absl/status/status.h"
#include "planner/plan/plan.h"
#include "planner/setting/setting.h"

namespace motley::planner {

struct RunsHere {
  // UNIMPLEMENTED: what of the plan the engine does not run; RESOURCE_EXHAUSTED: what it lacks with the state that the engine
  // keeps.
  absl::Status status;
  // Where it does not: whether another plan is known to, without a search (the frugal one, planner/strategies/frugal_plan.h).
  bool another = false;
};

// `plan` has its predictions.
RunsHere FindRunsHere(const Setting& setting, const Plan& plan);

}  // namespace motley::planner
