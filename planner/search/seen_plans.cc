#include "planner/search/seen_plans.h"

namespace motley::planner {

bool ClimbScore::Better(const ClimbScore& other) const {
  if (overflow > 0 || other.overflow > 0) return overflow < other.overflow * kWorthIt;
  return seconds < other.seconds * kWorthIt;
}

std::optional<QuickPrice> SeenPlans::Estimate(const Setting& setting, const Plan& plan) {
  const LayoutDigest digest = DigestOf(plan);
  {
    const absl::MutexLock lock(&mutex_);
    if (const auto at = estimated_.find(digest); at != estimated_.end()) return at->second;
  }
  const absl::StatusOr<QuickPrice> price = EstimatePlan(setting, plan);
  const std::optional<QuickPrice> known = price.ok() ? std::optional(*price) : std::nullopt;
  const absl::MutexLock lock(&mutex_);
  return estimated_.emplace(digest, known).first->second;
}

std::optional<SeenPlans::Simulated> SeenPlans::Find(const LayoutDigest& plan) const {
  const absl::MutexLock lock(&mutex_);
  const auto at = simulated_.find(plan);
  return at == simulated_.end() ? std::nullopt : std::optional(at->second);
}

void SeenPlans::Note(const LayoutDigest& plan, const Simulated& simulated) {
  const absl::MutexLock lock(&mutex_);
  simulated_.emplace(plan, simulated);
}

}  // namespace motley::planner
