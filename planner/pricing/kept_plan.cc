#include "planner/pricing/kept_plan.h"

#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "planner/plan/each_rank.h"
#include "planner/plan/ownership.h"

namespace motley::planner {

absl::StatusOr<KeptPlan> KeptPlan::TakeFrom(const Setting& setting, bool finishes, Plan* plan) {
  KeptPlan kept;
  if (!setting.request.keeps_replicas()) ShareReplicas(plan);
  kept.has_replicas_ = HasReplicas(*plan);
  if (kept.has_replicas_ || (finishes && !setting.request.runnable)) kept.as_kept_ = *plan;
  if (!kept.has_replicas_) return kept;
  MOTLEY_ASSIGN_OR_RETURN(kept.view_, ViewOf(setting, *kept.as_kept_, {.merge = false, .assign_samples = false}));
  ShareReplicas(plan);
  return kept;
}

void KeptPlan::GiveBackTo(Plan* plan) && {
  if (!as_kept_) return;
  std::vector<RankPlan*> priced;
  ForEachRank(*plan, [&](RankPlan& rank) { priced.push_back(&rank); });
  auto next = priced.begin();
  ForEachRank(*as_kept_, [&](RankPlan& rank) {
    rank.device_model = std::move((*next)->device_model);
    rank.predicted = std::move((*next++)->predicted);
  });
  as_kept_->predicted = std::move(plan->predicted);
  *plan = *std::move(as_kept_);
}

}  // namespace motley::planner
