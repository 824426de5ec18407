#include "planner/lowering/program_writer.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "planner/lowering/pipeline_places.h"
#include "planner/lowering/rank_passes.h"
#include "planner/lowering/stage_passes.h"
#include "planner/lowering/step_lowering_view.h"
#include "planner/lowering/transfer_pass.h"
#include "planner/plan/placement.h"
#include "planner/plan/plan_engine_limits.h"
#include "planner/plan/schedule_walk.h"
#include "planner/plan/validation_pass.h"

namespace motley::planner {
namespace {

// In forward order.
std::vector<int32_t> UnitsOf(const Element& element) {
  std::vector<int32_t> units;
  const auto first = static_cast<int32_t>(element.first_layer) + 1, behind = first + static_cast<int32_t>(element.layers);
  if (element.embedding) units.push_back(0);
  for (int32_t unit = first; unit < behind; ++unit) units.push_back(unit);
  if (element.head) units.push_back(behind);
  return units;
}

StageTraits TraitsOfStage(const Setting& setting, const PlanView& view, int s, const PipelinePlaces& places) {
  const StageView& stage = view.stages[s];
  StageTraits traits;
  for (const Element& element : view.pipelines[stage.pipeline].elements) {
    traits.units_of.push_back(element.stage == s ? UnitsOf(element) : std::vector<int32_t>());
    traits.units.insert(traits.units.end(), traits.units_of.back().begin(), traits.units_of.back().end());
  }
  std::sort(traits.units.begin(), traits.units.end());
  traits.elements = UnitElements(setting.costs.layout());
  traits.tied = setting.workload.model.tie_embeddings;
  traits.gathers_in_turn = stage.shared() && stage.plan->zero_stage == 3;
  traits.reduces_in_turn = stage.shared() && stage.plan->zero_stage >= 2;
  const bool by_ministage = TraitsOf(view.schedule).by_ministage;
  traits.by_block = by_ministage && traits.gathers_in_turn;
  traits.reduces_every_round = !by_ministage && traits.reduces_in_turn;
  traits.group = s;
  if (stage.embedding || stage.head) traits.tied_group = places.tied_group[stage.pipeline];
  traits.sum_group = places.sum_group;
  if (traits.sum_group.empty()) return traits;
  // Between pipelines the ranks meet twice a step: for the parameters and for the gradients.
  traits.reduces_in_turn = traits.reduces_every_round = traits.gathers_in_turn = traits.by_block = false;
  return traits;
}

// The stage's steps, as its members go through them.
StageSteps StepsOf(const StageView& stage, const StageSchedule& schedule, const StageTraits& traits, bool training) {
  StageSteps steps = WithParameters(ComputeSteps(schedule, traits), traits);
  if (training) steps = WithGradients(std::move(steps), traits);
  const bool meets = stage.shared() || !traits.sum_group.empty();
  return meets && stage.num_ranks > stage.num_units ? WithRoomForBroadcasts(std::move(steps), traits) : steps;
}

RankTraits TraitsOfRank(const PlanView& view, const PipelinePlaces& places, int32_t r, const StageTraits& stage, bool training) {
  const ActorView& unit = view.actors[view.actor_of_rank[r]];
  RankTraits rank{.training = training, .head = stage.head(), .tp_group = places.tp_group[r]};
  for (int i = 0; i < unit.ranks_per_unit; ++i) rank.recompute |= view.ranks[unit.first_rank + i].recompute.all();
  rank.leader = rank.tp_group < 0 ? -1 : unit.first_rank;
  rank.follows = r != unit.first_rank;
  return rank;
}

Program ProgramOf(const StageTraits& traits, const StageSteps& stage, const MemberMicrobatches& microbatches,
                  const StageMember& member, const RankTraits& rank) {
  Program program;
  program.kind = rank.training ? ProgramKind::kTraining : ProgramKind::kEvaluation;
  program.num_units = traits.head() + 1;
  program.units = traits.units;
  for (const ScheduledMicrobatch& own : microbatches) program.microbatches.push_back({own.samples, own.first});
  program.parameter_buffers = stage.parameter_buffers;
  program.gradient_buffers = stage.gradient_buffers;
  program.instructions = WithDependencies(OperationsOf(stage, member.steps, rank));
  return program;
}

// One pipeline's ranks: what they do together and what each computes.
struct PipelineSteps {
  PipelineSchedule schedule;  // samples of the global batch
  std::vector<StageTraits> traits;
  std::vector<StageSteps> stages;
  std::vector<StageMember> members;
};

absl::StatusOr<PipelineSteps> StepsOfPipeline(const Setting& setting, const PlanView& view, const PipelinePlaces& places,
                                              size_t p, const PipelineWalk& walk, PipelineSchedule schedule, bool training) {
  PipelineSteps result;
  int actor = view.stages[view.pipelines[p].first_stage].actors.front();
  for (size_t s = 0; s < schedule.stages.size(); ++s) {
    const int stage = view.pipelines[p].first_stage + static_cast<int>(s);
    result.traits.push_back(TraitsOfStage(setting, view, stage, places));
    result.stages.push_back(StepsOf(view.stages[stage], schedule.stages[s], result.traits[s], training));
    for (size_t m = 0; m < schedule.stages[s].members.size(); ++m) {
      const int32_t rank = view.actors[actor++].first_rank;
      result.members.push_back({s, m, rank, MemberSteps(result.stages[s], schedule.stages[s].members[m], walk.times[s][m])});
    }
  }
  MOTLEY_ASSIGN_OR_RETURN(result.members, WithTransfers(std::move(result.members), result.stages, schedule));
  result.schedule = std::move(schedule);
  return result;
}

void Shift(int64_t samples, PipelineSchedule* schedule) {
  for (StageSchedule& stage : schedule->stages) {
    for (MemberMicrobatches& member : stage.members) {
      for (ScheduledMicrobatch& microbatch : member) microbatch.first += samples;
    }
  }
}

Program ProgramOfRank(const PlanView& view, const PipelinePlaces& places, int32_t r, const PipelineSteps& pipeline,
                      const StageMember& member, bool training) {
  const StageTraits& traits = pipeline.traits[member.stage];
  const StageSteps& stage = pipeline.stages[member.stage];
  const MemberMicrobatches& microbatches = pipeline.schedule.stages[member.stage].members[member.index];
  const RankTraits rank = TraitsOfRank(view, places, r, traits, training);
  if (rank.tp_group < 0) return ProgramOf(traits, stage, microbatches, member, rank);
  return ProgramOf(traits, SliceOf(stage, view.ranks[r].plan->tp_share, places.slice_group[r]), microbatches, member, rank);
}

// The passes, one after another. Pipelines meet in sums alone.
absl::StatusOr<std::vector<Program>> Write(const Setting& setting, const Plan& plan, const Schedule& schedule, bool training) {
  MOTLEY_ASSIGN_OR_RETURN(const PlanView view, ViewOf(setting, plan, {.merge = false, .assign_samples = false}));
  const PipelinePlaces places = PlacesOf(setting, view);
  std::vector<Program> programs;
  int64_t samples = 0;
  for (size_t p = 0; p < view.pipelines.size(); ++p) {
    const PipelineWalk walk = WalkSchedule(plan.pipelines[p], schedule.pipelines[p], training);
    PipelineSchedule shifted = schedule.pipelines[p];
    Shift(std::exchange(samples, samples + view.pipelines[p].batch), &shifted);
    MOTLEY_ASSIGN_OR_RETURN(const PipelineSteps pipeline,
                            StepsOfPipeline(setting, view, places, p, walk, std::move(shifted), training));
    for (const StageMember& member : pipeline.members) {
      const int ranks = view.actors[view.actor_of_rank[member.rank]].ranks_per_unit;
      for (int32_t r = member.rank; r < member.rank + ranks; ++r) {
        Program& program = programs.emplace_back(ProgramOfRank(view, places, r, pipeline, member, training));
        program.rank = r;
        program.world = static_cast<int32_t>(view.ranks.size());
        program.groups = places.groups;
        if (const absl::Status valid = Validate(program); !valid.ok()) return absl::InternalError(valid.message());
      }
    }
  }
  return programs;
}

}  // namespace

absl::StatusOr<std::vector<Program>> LowerTraining(const Setting& setting, const Plan& plan) {
  MOTLEY_RETURN_IF_ERROR(Validate(plan, setting.workload.model));
  MOTLEY_RETURN_IF_ERROR(ValidateWithin(kWrittenLimits, plan));
  if (!plan.training) return absl::FailedPreconditionError("the plan has no schedule yet");
  return Write(setting, plan, *plan.training, true);
}

absl::StatusOr<std::vector<Program>> LowerEvaluation(const Setting& setting, const Plan& plan) {
  if (!plan.validation) return absl::FailedPreconditionError("the plan has no schedule of a validation pass");
  return Write(setting, ValidationPass(plan, MicrobatchesOf(*plan.validation)), *plan.validation, false);
}

}  // namespace motley::planner
