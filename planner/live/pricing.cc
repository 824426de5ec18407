#include "planner/live/pricing.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "planner/live/explain.h"
#include "planner/live/layered.h"
#include "planner/live/plan_builder.h"
#include "planner/util/quantity_text.h"

namespace motley::planner {
namespace {

absl::Status CheckMemory(const CostModel& cost, const Simulation& simulation) {
  for (size_t r = 0; r < simulation.ranks.size(); ++r) {
    const int rank = static_cast<int>(r);
    const int64_t missing = simulation.ranks[r].peak_bytes - cost.UsableBytes(rank);
    if (missing <= 0) continue;
    return absl::ResourceExhaustedError(
        absl::StrCat("the plan does not fit: ", cost.device(rank).id.value(), " needs ",
                     BytesText(simulation.ranks[r].peak_bytes), " and lacks ", BytesText(missing), " (", missing,
                     " bytes); give it fewer samples, a smaller microbatch, recomputation or a smaller shard"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PlannerInput> InputOf(const PlannerInput& input, const Plan& plan) {
  std::vector<size_t> indices;
  for (const UnitPlan& unit : plan.pipelines[0].stages[0].units) {
    const DeviceId& id = unit.ranks[0].device;
    const auto found =
        std::find_if(input.devices.begin(), input.devices.end(), [&id](const DeviceDescription& d) { return d.id == id; });
    if (found == input.devices.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("plan: device ", id.value(), " is not among the ", input.devices.size(), " that may be used"));
    }
    indices.push_back(static_cast<size_t>(found - input.devices.begin()));
  }
  if (input.compute.size() != input.devices.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(input.devices.size(), " devices but ", input.compute.size(), " compute profiles"));
  }
  return Restrict(input, indices);
}

absl::StatusOr<PricedTraining> PriceTraining(const PlannerInput& input, Plan plan) {
  PricedTraining priced;
  MOTLEY_ASSIGN_OR_RETURN(priced.programs, LowerTraining(plan, input.model));
  MOTLEY_ASSIGN_OR_RETURN(const PlannerInput own, InputOf(input, plan));
  MOTLEY_ASSIGN_OR_RETURN(const CostModel cost, CostModel::Create(own));
  StagePlan& stage = plan.pipelines[0].stages[0];
  MOTLEY_ASSIGN_OR_RETURN(priced.simulation, Simulate(cost, stage.placement, priced.programs));
  MOTLEY_RETURN_IF_ERROR(CheckMemory(cost, priced.simulation));
  for (size_t r = 0; r < stage.units.size(); ++r) {
    stage.units[r].ranks[0].predicted = {priced.simulation.ranks[r].busy_seconds, priced.simulation.ranks[r].peak_bytes};
  }
  plan.predicted.step_seconds = priced.simulation.seconds;
  plan.predicted.tokens_per_second =
      priced.simulation.seconds > 0 ? static_cast<double>(plan.global_batch * plan.seq_len) / priced.simulation.seconds : 0;
  plan.predicted.binding_constraint = BusiestLane(plan, priced.programs, priced.simulation);
  priced.plan = std::move(plan);
  return priced;
}

}  // namespace motley::planner
