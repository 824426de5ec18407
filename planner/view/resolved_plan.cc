#include "planner/view/resolved_plan.h"

#include "common/base/status_macros.h"
#include "planner/plan/unit_slices.h"

namespace motley::planner {

absl::StatusOr<ResolvedPlan> Resolve(const Setting& setting, const Plan& plan) {
  ResolvedPlan resolved;
  resolved.plan = &plan;
  MOTLEY_ASSIGN_OR_RETURN(resolved.view, ViewOf(setting, plan, {.merge = false}));
  MOTLEY_ASSIGN_OR_RETURN(resolved.slices, SlicesOfRanks(setting.workload.model, plan));
  return resolved;
}

}  // namespace motley::planner
