// The one price of a finished plan: what answers, comparisons, explanations and simulations show, and by what strategies and
// `auto` choose between plans.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/plan/plan.h"
#include "planner/pricing/evaluate.h"
#include "planner/pricing/price_book.h"
#include "planner/setting/setting.h"

namespace motley::planner {

// A plan's seconds, graph and timeline are those of its ranks' programs, its memory is counted as scheduled (`predicted.as_run`).
// Where what runs is asked for, the plan is finished: it comes back with owners and a training schedule. Else it is kept as it
// was, and where its programs would be very long, Evaluate's graph of classes stands for them. Errors of Evaluate, Resolve and
// SimulatePrograms.
absl::StatusOr<Evaluation> Price(const Setting& setting, Plan plan);

// What is no fuller than so much by Evaluate, whose closed form may be a fifth too few (docs/inside/simulator.md, "Memory"), fits
// as scheduled, too.
inline constexpr double kFarFromFull = 0.75;
// OK: it fits as Price would count it, which this does without seconds; or its programs would be very long, and nobody asks for
// what runs. Where `plan` has Evaluate's predictions, ranks that are far from full by them are not asked. RESOURCE_EXHAUSTED:
// what it lacks. Errors of Price.
absl::Status FitsAsScheduled(const Setting& setting, const Plan& plan);

// Search nodes (planner/search/polish.h) that FindFastest takes for a plan's programs. 0: they are too long, Evaluate's word
// does.
int64_t PriceNodes(const Plan& plan);

// A plan that Evaluate has priced.
struct Contender {
  const Plan* plan = nullptr;
  double price = 0;  // Price's seconds, where they are known already
};
// Whose Price is least; of equals the first. Plans that are much slower by Evaluate are not priced, nor is one twice. Fills in
// the prices that it found. FAILED_PRECONDITION: none can be lowered; there is none. RESOURCE_EXHAUSTED: none fits as scheduled.
// `prices`: known ones of the setting.
absl::StatusOr<size_t> FindFastest(const Setting& setting, std::vector<Contender>* contenders, PriceBook* prices = nullptr);

}  // namespace motley::planner
