// A plan as it is kept beside what is priced of it. A published system whose plan says ZeRO 0 keeps all of a stage's state on
// each rank, where what runs shares it (ShareReplicas): such a plan has the seconds of its shared form, and bytes of its own. And
// who does not ask for what runs gets the plan back with the shares that it had, as no elements have owners yet.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"
#include "planner/setting/setting.h"
#include "planner/view/plan_view.h"

namespace motley::planner {

class KeptPlan {
 public:
  // Leaves in `plan`, which has passed Validate, what is priced of it. `finishes`: that will be changed further. Errors of
  // ViewOf.
  static absl::StatusOr<KeptPlan> TakeFrom(const Setting& setting, bool finishes, Plan* plan);

  // Of the plan with its replicas; nullptr: it has none.
  const PlanView* view() const { return has_replicas_ ? &view_ : nullptr; }
  // The plan as it is kept, with what was predicted of what was priced. Nothing where that is the same.
  void GiveBackTo(Plan* plan) &&;

 private:
  std::optional<Plan> as_kept_;
  bool has_replicas_ = false;
  PlanView view_;  // of it
};

}  // namespace motley::planner
