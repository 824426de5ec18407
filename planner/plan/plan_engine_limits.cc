// What the plan language says and the engine does not run yet. Everything else, `motley simulate` included, takes any plan.
#include "planner/plan/plan_engine_limits.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "planner/plan/each_rank.h"
#include "planner/plan/plan.h"

namespace motley::planner {
namespace {

absl::Status CheckRank(const PlanLimits& limits, const RankPlan& rank, size_t r, size_t pipelines) {
  const auto refuse = [&](const OffloadKinds& beyond, const std::string& beside) {
    const std::string kinds = InWords(beyond);
    return absl::UnimplementedError(absl::StrCat("plan: rank ", r, " (", rank.device.value(), "): it offloads ", kinds, beside,
                                                 ", ", limits.who, " plans that keep ", kinds, " on the device",
                                                 beside.empty() ? "" : " there"));
  };
  if (const OffloadKinds beyond = rank.offload.Without(limits.offload); beyond.any()) return refuse(beyond, "");
  const OffloadKinds beyond = rank.offload.Without(limits.with_pipelines);
  if (pipelines == 1 || !beyond.any()) return absl::OkStatus();
  return refuse(beyond, absl::StrCat(" with ", pipelines, " pipelines"));
}

}  // namespace

bool IsLayeredAllTheSame(const Plan& plan) {
  if (plan.pipelines.size() != 1 || plan.pipelines[0].stages.size() != 1) return false;
  const std::vector<UnitPlan>& units = plan.pipelines[0].stages[0].units;
  return std::all_of(units.begin(), units.end(), [](const UnitPlan& unit) { return unit.microbatches.size() <= 1; });
}

absl::Status ValidateWithin(const PlanLimits& limits, const Plan& plan) {
  size_t r = 0;
  absl::Status status;
  ForEachRank(plan, [&](const RankPlan& rank) { status.Update(CheckRank(limits, rank, r++, plan.pipelines.size())); });
  if (status.ok() && plan.optimizer_steps == OptimizerSteps::kInTurn && !limits.steps_in_turn) {
    return absl::UnimplementedError(
        absl::StrCat("plan: optimizer_steps is in_turn, ", limits.who, " plans that step at the end (at_end)"));
  }
  return status;
}

absl::Status ValidateForEngine(const Plan& plan, const ModelShape& model) {
  MOTLEY_RETURN_IF_ERROR(Validate(plan, model));
  return ValidateWithin(kEngineLimits, plan);
}

}  // namespace motley::planner
