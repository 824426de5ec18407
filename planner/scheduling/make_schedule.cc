#include "planner/scheduling/make_schedule.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "planner/plan/family_order.h"
#include "planner/plan/schedule_check.h"
#include "planner/plan/schedule_walk.h"
#include "planner/plan/validation_pass.h"
#include "planner/view/plan_view.h"

namespace motley::planner {
namespace {

// Times that a limit is raised by one before it is raised faster.
constexpr int64_t kCarefully = 16;

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

std::vector<StagePlace> StagePlaces(const PlanView& view, const PipelineView& pipeline, const PipelineSchedule& schedule) {
  std::vector<StagePlace> places;
  for (int s = 0; s < pipeline.num_stages; ++s) {
    const StageView& stage = view.stages[pipeline.first_stage + s];
    StagePlace place;
    place.index = s;
    place.num_stages = pipeline.num_stages;
    for (size_t v = 0; v < schedule.stage_of.size(); ++v) {
      if (schedule.stage_of[v] == s) place.virtual_stages.push_back(static_cast<int32_t>(v));
    }
    place.rounds = NumRounds(schedule.stages[s]);
    const auto ministages = static_cast<int64_t>(place.virtual_stages.size());
    place.limit = TraitsOf(view.schedule).takes_in_flight
                      ? MostInFlight(view, stage, place.rounds)
                      : InFlight(view.schedule, s, pipeline.num_stages, ministages, place.rounds);
    places.push_back(std::move(place));
  }
  return places;
}

// Lets forwards run ahead where they must, no further: of the stages whose next forward could be computed while all wait, the one
// nearest to the loss keeps one more in flight. A fixed order has no limit to raise. With all forwards first (GPipe's order)
// nobody waits; with several virtual stages a stage their order can be what ranks of unlike microbatches cannot keep, and then
// all pass one before the next.
class Mender {
 public:
  Mender(ScheduleFamily family, const PipelinePlan& plan, std::vector<StagePlace> places, PipelineSchedule* schedule)
      : family_(family), plan_(plan), places_(std::move(places)), schedule_(*schedule) {}

  absl::StatusOr<PipelineWalk> Mend() {
    for (size_t s = 0; s < places_.size(); ++s) Order(s);
    for (int64_t tries = 0;; ++tries) {
      PipelineWalk walk = WalkSchedule(plan_, schedule_, true);
      if (walk.stuck.empty()) return walk;
      if (walk.could_run_ahead.empty() || TraitsOf(family_).fixed_order) return OrderAllByVirtualStage();
      const PipelineWalk::Ahead& ahead = walk.could_run_ahead.back();
      StagePlace& place = places_[ahead.stage];
      const int64_t more = std::max<int64_t>(1, tries < kCarefully ? 1 : place.limit);
      place.limit = std::max(place.limit + more, ahead.in_flight);
      Order(ahead.stage);
    }
  }

 private:
  void Order(size_t s) { schedule_.stages[s].actions = FamilyOrder(family_, places_[s]); }

  absl::StatusOr<PipelineWalk> OrderAllByVirtualStage() {
    for (size_t s = 0; s < places_.size(); ++s) schedule_.stages[s].actions = OrderByVirtualStage(family_, places_[s]);
    PipelineWalk walk = WalkSchedule(plan_, schedule_, true);
    if (walk.stuck.empty()) return walk;
    return absl::FailedPreconditionError(
        absl::StrCat("the plan's ranks would wait for each other: ", WaitsText(plan_, schedule_, walk)));
  }

  const ScheduleFamily family_;
  const PipelinePlan& plan_;
  std::vector<StagePlace> places_;
  PipelineSchedule& schedule_;
};

}  // namespace

absl::StatusOr<WalkedSchedule> MakeTrainingSchedule(const PlanView& view, const Plan& plan) {
  WalkedSchedule walked;
  for (size_t p = 0; p < view.pipelines.size(); ++p) {
    PipelineSchedule& pipeline = walked.schedule.pipelines.emplace_back(DealtOf(view, view.pipelines[p]));
    Mender mender(plan.schedule, plan.pipelines[p], StagePlaces(view, view.pipelines[p], pipeline), &pipeline);
    MOTLEY_ASSIGN_OR_RETURN(PipelineWalk walk, mender.Mend());
    walked.walks.push_back(std::move(walk));
  }
  return walked;
}

WalkedSchedule WalkedTraining(const Plan& plan) {
  WalkedSchedule walked{*plan.training, {}};
  for (size_t p = 0; p < plan.pipelines.size(); ++p) {
    walked.walks.push_back(WalkSchedule(plan.pipelines[p], walked.schedule.pipelines[p], true));
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
    const std::vector<StagePlace> places = StagePlaces(view, pipeline, dealt);
    for (size_t s = 0; s < places.size(); ++s) dealt.stages[s].actions = ForwardOrder(places[s]);
  }
  return schedule;
}

}  // namespace motley::planner
