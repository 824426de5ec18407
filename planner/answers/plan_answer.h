// `motley plan --cluster ... --model ...` as a function: from files' contents to plans with predictions, bound and reasons.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/answers/runs_here.h"
#include "planner/pricing/evaluate.h"
#include "planner/setting/setting.h"
#include "planner/strategies/catalog.h"

namespace motley::planner {

struct PlanAnswer {
  Evaluation evaluation;  // of the chosen plan, lower bound filled in
  LowerBound bound;
  double planning_seconds = 0;
};
// Runs the requested strategy, prices its plan, fills in the bound. RESOURCE_EXHAUSTED: nothing fits: which bytes are missing and
// the cheapest ways out, tried with `book`'s latencies (without: estimates, which changes no bytes). NOT_FOUND: unknown strategy.
absl::StatusOr<PlanAnswer> AnswerPlan(const Setting& setting, const LatencyBook* book = nullptr);

// One row of --compare.
struct ComparisonRow {
  std::string strategy;
  Fidelity fidelity = Fidelity::kTuned;
  absl::Status status;  // why there is no plan
  Plan plan;
  RunsHere runs;
  double worst_memory = 0;  // largest peak / usable
  double planning_seconds = 0;
};
// One for each strategy of the catalog, in its order, at the request's fidelity, each with the price that it has as an answer.
// `progress`, where given, is called after each, one call at a time, with how many are done of how many.
// Unless the request is `runnable` their plans may be of the whole language; `runs` says which of them the engine runs.
using ComparisonProgress = std::function<void(int done, int total)>;
std::vector<ComparisonRow> Compare(const Setting& setting, const ComparisonProgress& progress = nullptr);

// One strategy's plan, named, complete (every device of the setting is in a rank or unused, with a reason) and priced (price.h).
// RESOURCE_EXHAUSTED also where the strategy's own model said that the plan fits and the ledger says it does not.
absl::StatusOr<Evaluation> PlanAndEvaluate(const Setting& setting, const CatalogEntry& strategy);

// Lists devices of the setting that the plan neither uses nor explains, and the excluded ones.
void CompleteUnused(const Setting& setting, Plan* plan);

}  // namespace motley::planner
