#include "planner/pricing/evaluate.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "planner/graph/program_graph.h"
#include "planner/lowering/class_programs.h"
#include "planner/plan/ownership.h"
#include "planner/pricing/prediction.h"
#include "planner/scheduling/make_schedule.h"
#include "planner/view/plan_view.h"

namespace motley::planner {
namespace {

// The forwards in flight of the family's order, or more where it was mended to let more through.
int64_t InFlightOf(const PlanView& view, const Schedule& schedule, const RankView& rank, const RankDuty& duty) {
  const StageView& stage = view.stages[rank.stage];
  const int actor = view.actor_of_rank[static_cast<size_t>(&rank - view.ranks.data())];
  const int64_t count = view.actors[actor].count();
  const int64_t own =
      duty.in_flight > 0 ? duty.in_flight : InFlight(view.schedule, stage.index, stage.num_stages, duty.ministages, count);
  return std::max(own, MostInFlight(schedule.pipelines[rank.pipeline].stages[stage.index],
                                    static_cast<size_t>(actor - stage.actors.front())));
}

}  // namespace

absl::StatusOr<Evaluation> Evaluate(const Setting& setting, Plan plan) {
  MOTLEY_RETURN_IF_ERROR(Validate(plan, setting.workload.model));
  MOTLEY_RETURN_IF_ERROR(CheckWorkload(setting, plan));
  if (!setting.request.keeps_replicas()) ShareReplicas(&plan);
  Evaluation result;
  result.plan = std::move(plan);
  MOTLEY_ASSIGN_OR_RETURN(const PlanView view, ViewOf(setting, result.plan));
  MOTLEY_ASSIGN_OR_RETURN(const WalkedSchedule walked, ScheduleOfActors(view, result.plan));
  MOTLEY_ASSIGN_OR_RETURN(const ClassPrograms classes, LowerClasses(setting, view, walked.schedule, walked.walks));
  MOTLEY_ASSIGN_OR_RETURN(StepGraph graph, GraphOfClasses(setting, view, classes));
  const auto in_flight = [&](const RankView& rank, const RankDuty& duty) {
    return InFlightOf(view, walked.schedule, rank, duty);
  };
  const auto as_it_is = [](size_t, const RankDuty&, MemoryByPurpose*) {};
  MOTLEY_RETURN_IF_ERROR(Predict(setting, view, std::move(graph), in_flight, as_it_is, &result));
  return result;
}

}  // namespace motley::planner
