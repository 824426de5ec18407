#include "planner/lowering/program_writer.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "planner/lowering/model_blocks.h"
#include "planner/lowering/pipeline_places.h"
#include "planner/lowering/pipeline_steps.h"
#include "planner/lowering/plan_view.h"
#include "planner/lowering/rank_passes.h"
#include "planner/lowering/stage_passes.h"
#include "planner/plan/plan_engine_limits.h"
#include "planner/plan/unit_slices.h"
#include "planner/plan/validation_pass.h"

namespace motley::planner {
namespace {

RankTraits TraitsOfRank(const WrittenPass& pass, int32_t r) {
  const PlanView& view = pass.view;
  const ActorView& unit = view.actors[view.actor_of_rank[r]];
  RankTraits rank{.training = pass.training, .head = pass.blocks.head(), .tp_group = pass.places.tp_group[r]};
  rank.recompute = view.ranks[r].recompute;
  rank.leader = rank.tp_group < 0 ? -1 : unit.first_rank;
  rank.follows = r != unit.first_rank;
  return rank;
}

Program ProgramOfRank(const WrittenPass& pass, int32_t r, const ModelSlice& slice, const PipelineSteps& pipeline,
                      const StageMember& member) {
  const StageSteps& stage = pipeline.stages[member.stage];
  const RankTraits rank = TraitsOfRank(pass, r);
  const std::vector<SharedElements>& shared = pass.places.shared[r];
  if (std::all_of(shared.begin(), shared.end(), [](const SharedElements& unit) { return unit.empty(); })) {
    return ProgramOf(pass, pipeline, stage, member, rank, {});
  }
  return ProgramOf(pass, pipeline, SliceOf(stage, ElementsOf(pass.setting.workload.model, slice), shared), member, rank, {});
}

// The passes, one after another. Pipelines meet in sums alone.
absl::StatusOr<std::vector<Program>> Write(const Setting& setting, const Plan& plan, const Schedule& schedule, bool training) {
  MOTLEY_ASSIGN_OR_RETURN(const PlanView view, ViewOf(setting, plan, {.merge = false, .assign_samples = false}));
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<ModelSlice> slices, SlicesOfRanks(setting.workload.model, plan));
  const PipelinePlaces places = PlacesOf(setting, view, slices);
  const ModelBlocks units = UnitsAsBlocks(setting);
  const WrittenPass pass{setting, view, places, units, training};
  std::vector<Program> programs;
  int64_t samples = 0;
  for (size_t p = 0; p < view.pipelines.size(); ++p) {
    const int64_t first_sample = std::exchange(samples, samples + view.pipelines[p].batch);
    const PipelineWalk walk = WalkSchedule(plan.pipelines[p], schedule.pipelines[p], training);
    MOTLEY_ASSIGN_OR_RETURN(const PipelineSteps pipeline, StepsOfPipeline(pass, p, schedule.pipelines[p], walk, first_sample));
    for (const StageMember& member : pipeline.members) {
      const int ranks = view.actors[view.actor_of_rank[member.rank]].ranks_per_unit;
      for (int32_t r = member.rank; r < member.rank + ranks; ++r) {
        Program& program = programs.emplace_back(ProgramOfRank(pass, r, slices[r], pipeline, member));
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
  MOTLEY_RETURN_IF_ERROR(ValidateWithin(kWrittenLimits, plan, setting.workload.model));
  if (!plan.training) return absl::FailedPreconditionError("the plan has no schedule yet");
  return Write(setting, plan, *plan.training, true);
}

absl::StatusOr<std::vector<Program>> LowerEvaluation(const Setting& setting, const Plan& plan) {
  if (!plan.validation) return absl::FailedPreconditionError("the plan has no schedule of a validation pass");
  return Write(setting, ValidationPass(plan, MicrobatchesOf(*plan.validation)), *plan.validation, false);
}

}  // namespace motley::planner
