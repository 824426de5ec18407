// The last step of every search that has a model of its own: the few plans it likes best are estimated, the best of those
// simulated, and the simulator decides.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"
#include "planner/setting/setting.h"

namespace motley::planner {

// A plan with what the search takes its step to last.
struct LikedPlan {
  double seconds = 0;
  Plan plan;
};

// The fastest by simulation, with its predictions. Plans are simulated in the order of the longer of two guesses, the search's
// and the estimator's (neither sees all contention), until a guess is a tenth longer than the best simulated step or
// `simulations` were made (fewer where the plans are large). Ties: the order given. RESOURCE_EXHAUSTED: none fits; says what the
// first one lacks.
absl::StatusOr<Plan> BestPlan(const Setting& setting, std::vector<LikedPlan> candidates, size_t simulations = 12);
// The same without guesses of the search's own.
absl::StatusOr<Plan> BestPlan(const Setting& setting, std::vector<Plan> candidates, size_t simulations = 12);

// Puts a candidate among the `most` of least seconds, which ascend; of equals the first that came stands first.
template <typename Candidate>
void KeepFastest(Candidate candidate, size_t most, std::vector<Candidate>* best) {
  const auto at = std::upper_bound(best->begin(), best->end(), candidate.seconds,
                                   [](double seconds, const Candidate& other) { return seconds < other.seconds; });
  best->insert(at, std::move(candidate));
  if (best->size() > most) best->pop_back();
}

// The faster by its price (planner/pricing/price.h) of two answers that Evaluate has priced, the first of equals; the error of
// the first where neither is a plan.
absl::StatusOr<Plan> FasterPlan(const Setting& setting, absl::StatusOr<Plan> a, absl::StatusOr<Plan> b);

}  // namespace motley::planner
