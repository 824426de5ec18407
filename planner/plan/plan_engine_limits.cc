// What the plan language says and the engine does not run yet. Everything else, `motley simulate` included, takes any plan.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "planner/plan/op_set.h"
#include "planner/plan/plan.h"

namespace motley::planner {
namespace {

template <typename... Parts>
absl::Status Beyond(const Parts&... parts) {
  return absl::UnimplementedError(absl::StrCat("plan: ", parts...));
}

absl::Status CheckRank(const RankPlan& rank, size_t r) {
  const std::string name = absl::StrCat("rank ", r, " (", rank.device.value(), ")");
  if (!rank.recompute.empty() && !rank.recompute.all()) {
    return Beyond(name, ": recompute '", ToText(rank.recompute), "' given, the engine recomputes none or full");
  }
  if (rank.offload_activations || rank.offload_parameters || rank.offload_optimizer) {
    return Beyond(name, ": offload given, the engine keeps everything on the device");
  }
  return absl::OkStatus();
}

}  // namespace

bool IsLayeredAllTheSame(const Plan& plan) {
  if (plan.pipelines.size() != 1 || plan.pipelines[0].stages.size() != 1) return false;
  const std::vector<UnitPlan>& units = plan.pipelines[0].stages[0].units;
  return std::all_of(units.begin(), units.end(), [](const UnitPlan& unit) { return unit.microbatches.size() <= 1; });
}

absl::Status ValidateForEngine(const Plan& plan, const ModelShape& model) {
  MOTLEY_RETURN_IF_ERROR(Validate(plan, model));
  if (plan.pipelines.size() != 1) return Beyond("pipelines: ", plan.pipelines.size(), " given, the engine runs exactly 1");
  if (plan.pipelines[0].stages.size() != 1) {
    return Beyond("pipelines[0].stages: ", plan.pipelines[0].stages.size(), " given, the engine runs exactly 1");
  }
  if (plan.schedule != ScheduleFamily::kLayered && !IsLayeredAllTheSame(plan)) {
    return Beyond("schedule ", std::string(ScheduleName(plan.schedule)),
                  " given with several microbatches on a rank, the engine runs layered");
  }
  if (plan.dtype != DType::kFloat32 && plan.dtype != DType::kFloat64) {
    return Beyond("dtype ", std::string(DTypeName(plan.dtype)), " given, the engine computes in float32 or float64");
  }
  const StagePlan& stage = plan.pipelines[0].stages[0];
  if (stage.zero_stage != 3) return Beyond("zero_stage ", stage.zero_stage, " given, the engine runs 3");
  for (size_t u = 0; u < stage.units.size(); ++u) {
    if (stage.units[u].ranks.size() != 1) {
      return Beyond("pipelines[0].stages[0].units[", u, "].ranks: ", stage.units[u].ranks.size(),
                    " given, the engine runs units of exactly 1 rank (no tensor parallelism)");
    }
    MOTLEY_RETURN_IF_ERROR(CheckRank(stage.units[u].ranks[0], u));
  }
  return absl::OkStatus();
}

}  // namespace motley::planner
