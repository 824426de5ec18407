#include "planner/pricing/kept_replicas.h"

#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "planner/plan/each_rank.h"
#include "planner/plan/ownership.h"

namespace motley::planner {

absl::StatusOr<KeptReplicas> KeptReplicas::TakeFrom(const Setting& setting, Plan* plan) {
  KeptReplicas kept;
  if (!HasReplicas(*plan)) return kept;
  if (setting.request.keeps_replicas()) {
    kept.as_kept_ = *plan;
    MOTLEY_ASSIGN_OR_RETURN(kept.view_, ViewOf(setting, *kept.as_kept_, {.merge = false, .assign_samples = false}));
  }
  ShareReplicas(plan);
  return kept;
}

void KeptReplicas::GiveBackTo(Plan* plan) && {
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
