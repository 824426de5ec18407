// A plan's schedules as text for people: `motley plan JOB --schedule`.
#pragma once

#include <string>

#include "planner/plan/plan.h"

namespace motley::planner {

// The virtual stages, then what each member of each stage computes, in order, with the samples of its microbatches; of the
// training step and, where there is one, of the validation pass. A plan without schedules says so.
std::string ScheduleListing(const Plan& plan);

}  // namespace motley::planner
