#include "planner/pricing/evaluate.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "planner/graph/program_graph.h"
#include "planner/lowering/class_programs.h"
#include "planner/pricing/kept_plan.h"
#include "planner/pricing/prediction.h"
#include "planner/scheduling/make_schedule.h"
#include "planner/view/plan_view.h"

namespace motley::planner {
namespace {

// The forwards in flight of the family's order, or more where it was mended to let more through.
int64_t InFlightOf(const PlanView& view, const Schedule& schedule, size_t r) {
  const RankView& rank = view.ranks[r];
  const StageView& stage = view.stages[rank.stage];
  const int actor = view.actor_of_rank[r];
  const RankDuty duty = DutyOf(view, rank);
  const int64_t own = duty.in_flight > 0
                          ? duty.in_flight
                          : InFlight(view.schedule, stage.index, stage.num_stages, duty.ministages, view.actors[actor].count());
  const int64_t most =
      MostInFlight(schedule.pipelines[rank.pipeline].stages[stage.index], static_cast<size_t>(actor - stage.actors.front()));
  return std::max(own, most);
}

}  // namespace

absl::StatusOr<Evaluation> Evaluate(const Setting& setting, Plan plan) {
  MOTLEY_RETURN_IF_ERROR(Validate(plan, setting.workload.model));
  MOTLEY_RETURN_IF_ERROR(CheckWorkload(setting, plan));
  MOTLEY_ASSIGN_OR_RETURN(KeptPlan kept_plan, KeptPlan::TakeFrom(setting, /*finishes=*/false, &plan));
  Evaluation result;
  result.plan = std::move(plan);
  MOTLEY_ASSIGN_OR_RETURN(const PlanView view, ViewOf(setting, result.plan));
  MOTLEY_ASSIGN_OR_RETURN(const WalkedSchedule walked, MakeTrainingSchedule(view, result.plan));
  MOTLEY_ASSIGN_OR_RETURN(const ClassPrograms classes, LowerClasses(setting, view, walked.schedule, walked.walks));
  MOTLEY_ASSIGN_OR_RETURN(StepGraph graph, GraphOfClasses(setting, view, classes));
  MOTLEY_ASSIGN_OR_RETURN(Timeline timeline, Run(graph));
  const PlanView& kept = kept_plan.view() != nullptr ? *kept_plan.view() : view;
  const auto bytes_of = [&](size_t r, RankPrediction* predicted) {
    predicted->memory = ClosedFormBytes(setting, kept, r, InFlightOf(view, walked.schedule, r));
  };
  Predict(setting, view, std::move(graph), std::move(timeline), bytes_of, &result);
  std::move(kept_plan).GiveBackTo(&result.plan);
  return result;
}

}  // namespace motley::planner
