// The one price of a finished plan: what answers, comparisons, explanations and simulations show, and by what strategies and
// `auto` choose between plans.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/plan/plan.h"
#include "planner/pricing/evaluate.h"
#include "planner/setting/setting.h"

namespace motley::planner {

// Where the setting asks for plans that the engine runs, and it runs this one: its memory by Evaluate, its seconds, graph and
// timeline those of its ranks' programs, as a job's are (`predicted.as_run`). Else Evaluate. Errors of Evaluate and
// LowerTraining.
absl::StatusOr<Evaluation> Price(const Setting& setting, Plan plan);

// The second half of Price, of what Evaluate has said.
absl::Status PriceByPrograms(const Setting& setting, Evaluation* evaluation);

}  // namespace motley::planner
