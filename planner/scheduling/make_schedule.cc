#include "planner/scheduling/make_schedule.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "planner/plan/family_order.h"
#include "planner/plan/schedule_check.h"
#include "planner/plan/validation_pass.h"
#include "planner/scheduling/stage_orders.h"

namespace motley::planner {
namespace {

MemberMicrobatches MicrobatchesOf(const ActorView& actor) {
  MemberMicrobatches microbatches;
  for (int64_t k = 0; k < actor.count(); ++k) microbatches.push_back({actor.begin[k], actor.samples(k), k});
  return microbatches;
}

// One pipeline's samples, without orders.
PipelineSchedule DealtOf(const PlanView& view, const PipelineView& pipeline) {
  PipelineSchedule schedule;
  for (const Element& element : pipeline.elements) schedule.stage_of.push_back(element.stage - pipeline.first_stage);
  for (int s = pipeline.first_stage; s < pipeline.first_stage + pipeline.num_stages; ++s) {
    StageSchedule& stage = schedule.stages.emplace_back();
    for (const int actor : view.stages[s].actors) stage.members.push_back(MicrobatchesOf(view.actors[actor]));
  }
  return schedule;
}

// Orders the stages, so that nobody waits for ever.
absl::StatusOr<PipelineWalk> Order(const Plan& plan, size_t p, std::vector<StagePlace> places, PipelineSchedule* schedule) {
  OrderMender mender(plan.schedule, std::move(places));
  for (;;) {
    for (size_t s = 0; s < schedule->stages.size(); ++s) schedule->stages[s].actions = mender.orders()[s];
    PipelineWalk walk = WalkSchedule(plan, p, *schedule, true);
    if (walk.stuck.empty()) return walk;
    if (mender.Mend(walk.could_run_ahead)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("the plan's ranks would wait for each other: ", WaitsText(plan.pipelines[p], *schedule, walk)));
  }
}

}  // namespace

absl::StatusOr<WalkedSchedule> MakeTrainingSchedule(const PlanView& view, const Plan& plan) {
  WalkedSchedule walked;
  for (size_t p = 0; p < view.pipelines.size(); ++p) {
    PipelineSchedule& pipeline = walked.schedule.pipelines.emplace_back(DealtOf(view, view.pipelines[p]));
    MOTLEY_ASSIGN_OR_RETURN(PipelineWalk walk, Order(plan, p, StagePlaces(view, view.pipelines[p]), &pipeline));
    walked.walks.push_back(std::move(walk));
  }
  return walked;
}

WalkedSchedule WalkedTraining(const Plan& plan) {
  WalkedSchedule walked{*plan.training, {}};
  for (size_t p = 0; p < plan.pipelines.size(); ++p) {
    walked.walks.push_back(WalkSchedule(plan, p, walked.schedule.pipelines[p], true));
  }
  return walked;
}

absl::StatusOr<Schedule> MakeValidationSchedule(const Setting& setting, const Plan& plan,
                                                const std::vector<std::vector<int64_t>>& microbatches) {
  const Plan pass = ValidationPass(plan, microbatches);
  MOTLEY_ASSIGN_OR_RETURN(const PlanView view, ViewOf(setting, pass, {.merge = false}));
  Schedule schedule;
  for (const PipelineView& pipeline : view.pipelines) {
    PipelineSchedule& dealt = schedule.pipelines.emplace_back(DealtOf(view, pipeline));
    const std::vector<StagePlace> places = StagePlaces(view, pipeline);
    for (size_t s = 0; s < places.size(); ++s) dealt.stages[s].actions = ForwardOrder(places[s]);
  }
  return schedule;
}

}  // namespace motley::planner
