// What the plan language says and the engine does not run yet. Everything else, `motley simulate` included, takes any plan.
#include "planner/plan/plan_engine_limits.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "planner/plan/op_set.h"
#include "planner/plan/plan.h"
#include "planner/plan/unit_slices.h"

namespace motley::planner {
namespace {

template <typename... Parts>
absl::Status Beyond(const Parts&... parts) {
  return absl::UnimplementedError(absl::StrCat("plan: ", parts...));
}

absl::Status CheckRank(const PlanLimits& limits, const RankPlan& rank, size_t ranks_of_unit, size_t r) {
  const std::string name = absl::StrCat("rank ", r, " (", rank.device.value(), ")");
  const bool by_operator = !rank.recompute.empty() && !rank.recompute.all();
  if (by_operator && ranks_of_unit > static_cast<size_t>(limits.most_tp_by_operator)) {
    return Beyond(name, ": recompute '", ToText(rank.recompute), "' given, ", limits.who, " none or full in units of ",
                  ranks_of_unit, " ranks");
  }
  if (!limits.offload && (rank.offload_activations || rank.offload_parameters || rank.offload_optimizer)) {
    return Beyond(name, ": offload given, ", limits.who, " plans that keep everything on the device");
  }
  return absl::OkStatus();
}

}  // namespace

bool Allows(const PlanLimits& limits, ScheduleFamily family) {
  const ScheduleTraits& traits = TraitsOf(family);
  return (limits.split_backward || !traits.splits_backward) && (limits.virtual_stages_in_v || traits.map != VirtualStageMap::kV);
}

bool IsLayeredAllTheSame(const Plan& plan) {
  if (plan.pipelines.size() != 1 || plan.pipelines[0].stages.size() != 1) return false;
  const std::vector<UnitPlan>& units = plan.pipelines[0].stages[0].units;
  return std::all_of(units.begin(), units.end(), [](const UnitPlan& unit) { return unit.microbatches.size() <= 1; });
}

absl::Status ValidateWithin(const PlanLimits& limits, const Plan& plan, const ModelShape& model) {
  if (plan.pipelines.size() > limits.most_pipelines) {
    return Beyond("pipelines: ", plan.pipelines.size(), " given, ", limits.who, " exactly ", limits.most_pipelines);
  }
  if (!Allows(limits, plan.schedule)) {
    const std::string allowed = NamesOf([&limits](const ScheduleTraits& traits) { return Allows(limits, traits.family); }, "and");
    return Beyond("schedule ", std::string(ScheduleName(plan.schedule)), " given, ", limits.who, " ", allowed);
  }
  size_t r = 0;
  for (size_t p = 0; p < plan.pipelines.size(); ++p) {
    for (size_t s = 0; s < plan.pipelines[p].stages.size(); ++s) {
      const std::vector<UnitPlan>& units = plan.pipelines[p].stages[s].units;
      for (size_t u = 0; u < units.size(); ++u) {
        if (units[u].ranks.size() > static_cast<size_t>(limits.most_tp)) {
          return Beyond("pipelines[", p, "].stages[", s, "].units[", u, "].ranks: ", units[u].ranks.size(), " given, ",
                        limits.who, " units of exactly ", limits.most_tp, " rank (no tensor parallelism)");
        }
        for (const RankPlan& rank : units[u].ranks) {
          MOTLEY_RETURN_IF_ERROR(CheckRank(limits, rank, units[u].ranks.size(), r++));
        }
      }
    }
  }
  return limits.tp_as_run ? CheckTensorParallel(plan, model) : absl::OkStatus();
}

absl::Status ValidateForEngine(const Plan& plan, const ModelShape& model) {
  MOTLEY_RETURN_IF_ERROR(Validate(plan, model));
  return ValidateWithin(kEngineLimits, plan, model);
}

}  // namespace motley::planner
