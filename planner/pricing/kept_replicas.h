// What a published system keeps beside what runs. Where its plan says ZeRO 0, each rank keeps all of its stage's state; what runs
// shares it (ShareReplicas). So such a plan has the seconds of its shared form, and bytes of its own.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"
#include "planner/setting/setting.h"
#include "planner/view/plan_view.h"

namespace motley::planner {

class KeptReplicas {
 public:
  // Leaves in `plan`, which has passed Validate, what runs of it. Errors of ViewOf.
  static absl::StatusOr<KeptReplicas> TakeFrom(const Setting& setting, Plan* plan);

  // By rank, of the plan as it is kept; nullptr: it keeps nothing besides.
  const PlanView* view() const { return as_kept_ ? &view_ : nullptr; }
  // The plan as it is kept, with what was predicted of what runs.
  void GiveBackTo(Plan* plan) &&;

 private:
  std::optional<Plan> as_kept_;
  PlanView view_;  // of it
};

}  // namespace motley::planner
