// auto's search of one cluster, the whole or a part of it. docs/inside/strategies/auto.md.
//
//   1 every strategy's own plan (tuned): auto is never worse than the best of them
//   2 pipelines in turn (auto_turns) and layered ones (auto_stages) over candidate groupings, everything uneven inside: plans
//     that no strategy has
//   3 the few best of 1 and 2 climb (polish): layers, microbatches, recomputation by operator, schedules, sharding, offload
//   4 the best of all are priced, and go a little further by price (auto_finalists)
// Where none of them fits, the plan that needs least memory is tried, and climbs.
// All of it within the setting's limits(): a job's plan is the best of what the engine runs. Search is by Evaluate; the answer
// is chosen by Price, which is what answers show, and so is what climbs, as far as the budget goes.
// Deterministic: the budget counts search nodes; a deadline is opt-in and marks the plan.
#pragma once

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"
#include "planner/pricing/price_book.h"
#include "planner/setting/setting.h"
#include "planner/strategies/auto/spent_nodes.h"

namespace motley::planner {

struct FoundPlan {
  Plan plan;
  double seconds = 0;  // its Price
};

// `prices`: known ones of the setting. Adds to `spent`. RESOURCE_EXHAUSTED: nothing fits; the nearest miss.
absl::StatusOr<FoundPlan> SearchWhole(const Setting& setting, PriceBook* prices, SpentNodes* spent);

// Steps 2 and 3 of a part, for plans that use all of its nodes (what uses fewer is another part's). `known`: the price of a plan
// that is there already; infinite: there is none. What comes not near it is left early: RESOURCE_EXHAUSTED.
absl::StatusOr<FoundPlan> SearchPart(const Setting& part, double known, PriceBook* prices, SpentNodes* spent);

}  // namespace motley::planner
