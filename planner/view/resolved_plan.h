// A plan with what its schedule, its programs and their price rest on, each found once and carried from room to room.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "common/model/model_slice.h"
#include "planner/plan/plan.h"
#include "planner/setting/setting.h"
#include "planner/view/plan_view.h"

namespace motley::planner {

// Refers to the plan, which must outlive it.
struct ResolvedPlan {
  const Plan* plan = nullptr;
  PlanView view;                   // each unit an actor of its own, with samples
  std::vector<ModelSlice> slices;  // of the model, by rank
};

// `plan` has passed Validate. Errors of ViewOf and SlicesOfRanks.
absl::StatusOr<ResolvedPlan> Resolve(const Setting& setting, const Plan& plan);

}  // namespace motley::planner
