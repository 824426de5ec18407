// Whether the engine runs a plan, and how fast, of plans that were priced otherwise too.
#pragma once

#include "absl/status/status.h"
#include "planner/plan/plan.h"
#include "planner/setting/setting.h"

namespace motley::planner {

struct RunsHere {
  // UNIMPLEMENTED: what of the plan the engine does not run; RESOURCE_EXHAUSTED: what it lacks with the state that the engine
  // keeps.
  absl::Status status;
  // Of the plan as it would run. The plan's own where that says so (`as_run`); 0: not known.
  double step_seconds = 0;
  // Where it does not: whether another plan is known to, without a search (the frugal one, planner/strategies/frugal_plan.h).
  bool another = false;
};

// `plan` has its predictions. Seconds of very long programs are not looked for.
RunsHere FindRunsHere(const Setting& setting, const Plan& plan);

}  // namespace motley::planner
