#include "planner/pricing/evaluate.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "planner/costs/memory_model.h"
#include "planner/lowering/step_lowering.h"
#include "planner/lowering/step_lowering_view.h"
#include "planner/pricing/prediction.h"

namespace motley::planner {
namespace {

// The forwards in flight of the family's order, or more where the merged graph had to let more through: stages of unequal
// microbatches may need them.
int64_t InFlightOf(const PlanView& view, const RankView& rank, const RankDuty& duty, const LoweredPlan& lowered) {
  const StageView& stage = view.stages[rank.stage];
  const auto count = static_cast<int64_t>(stage.plan->units[rank.unit].microbatches.size());
  const int64_t formula =
      duty.in_flight > 0 ? duty.in_flight : InFlight(view.schedule, stage.index, stage.num_stages, duty.ministages, count);
  const int64_t delayed = WeightsPutOff(view.schedule, stage.index);
  const auto actor = static_cast<size_t>(view.actor_of_rank[static_cast<size_t>(&rank - view.ranks.data())]);
  return std::max(formula, lowered.in_flight[actor] + delayed);
}

}  // namespace

absl::StatusOr<Evaluation> Evaluate(const Setting& setting, Plan plan) {
  MOTLEY_RETURN_IF_ERROR(Validate(plan, setting.workload.model));
  MOTLEY_RETURN_IF_ERROR(CheckWorkload(setting, plan));
  Evaluation result;
  result.plan = std::move(plan);
  MOTLEY_ASSIGN_OR_RETURN(const PlanView view, ViewOf(setting, result.plan));
  LoweredPlan lowered = Lower(setting, view);
  const auto in_flight = [&](const RankView& rank, const RankDuty& duty) { return InFlightOf(view, rank, duty, lowered); };
  const auto as_it_is = [](size_t, const RankDuty&, MemoryByPurpose*) {};
  MOTLEY_RETURN_IF_ERROR(Predict(setting, view, std::move(lowered.graph), in_flight, as_it_is, &result));
  return result;
}

}  // namespace motley::planner
