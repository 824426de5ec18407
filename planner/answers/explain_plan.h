// Why this plan, for people: what binds it, who does what, how much is left, what the numbers rest on.
#pragma once

#include <string>

#include "planner/pricing/evaluate.h"
#include "planner/setting/setting.h"

namespace motley::planner {

// `evaluation` is of `setting`. Begins with the plan's text, which lists the devices left out; then who does what by stage and
// kind of device, the lower bound with what decides it, and where each kind's latencies come from.
std::string ExplainPlan(const Setting& setting, const Evaluation& evaluation, const LowerBound& bound);

// The part of it that is not the plan nor the bound: what each kind of device does, what the numbers rest on.
std::string ExplainDetails(const Setting& setting, const Evaluation& evaluation);

}  // namespace motley::planner
