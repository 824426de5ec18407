// `motley plan --cluster ... --model ...` as a function: from files' contents to plans with predictions, bound and reasons.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/evaluate.h"
#include "planner/setting.h"

namespace motley::planner {

struct OfflineResult {
  Evaluation evaluation;   // of the chosen plan, lower bound filled in
  double planning_seconds = 0;
};
// Runs the requested strategy, evaluates, fills in the bound. RESOURCE_EXHAUSTED: nothing fits: which bytes are missing and the
// cheapest ways out.
absl::StatusOr<OfflineResult> PlanOffline(const Setting& setting);

// One row of --compare.
struct ComparisonRow {
  std::string strategy;
  Fidelity fidelity = Fidelity::kTuned;
  absl::Status status;     // why there is no plan
  Plan plan;
  double worst_memory = 0; // largest peak / usable
  double planning_seconds = 0;
};
std::vector<ComparisonRow> Compare(const Setting& setting);

}  // namespace motley::planner
