#include "planner/lowering/program_writer.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "planner/lowering/model_blocks.h"
#include "planner/lowering/pipeline_places.h"
#include "planner/lowering/pipeline_steps.h"
#include "planner/lowering/rank_passes.h"
#include "planner/lowering/stage_passes.h"
#include "planner/plan/ownership.h"
#include "planner/plan/unit_slices.h"
#include "planner/plan/validation_pass.h"
#include "planner/view/plan_view.h"

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
  const CopyTraits copies = CopiesOf(pass, r, 1, pipeline.traits[member.stage]);
  const std::vector<SharedElements>&gathered = pass.places.gathered[r], &reduced = pass.places.reduced[r];
  const auto all_whole = [](const std::vector<SharedElements>& units) {
    return std::all_of(units.begin(), units.end(), [](const SharedElements& unit) { return unit.empty(); });
  };
  const auto no_shards = [](const std::vector<UnitBuffer>& buffers) {
    return std::none_of(buffers.begin(), buffers.end(), [](const UnitBuffer& buffer) { return buffer.IsShard(); });
  };
  if (all_whole(gathered) && all_whole(reduced) && no_shards(stage.parameter_buffers) && no_shards(stage.gradient_buffers)) {
    return ProgramOf(pass, pipeline, stage, member, rank, copies);
  }
  const int32_t stage_group = pass.view.pipelines.size() > 1 ? stage.group : -1;
  const RankElements own = {ElementsOf(pass.setting.workload.model, slice), gathered, reduced, stage_group,
                            pass.places.in_turn[r]};
  return ProgramOf(pass, pipeline, SliceOf(stage, own), member, rank, copies);
}

// The passes, one after another. Pipelines meet in sums alone.
absl::StatusOr<std::vector<Program>> Write(const Setting& setting, const ResolvedPlan& resolved, const Schedule& schedule,
                                           const std::vector<PipelineWalk>& walks, bool training,
                                           const std::vector<bool>& asked = {}) {
  const auto& [plan, view, slices] = resolved;
  const Ownership ownership = OwnershipOf(*plan, setting.workload.model);
  const PipelinePlaces places = PlacesOf(setting, view, slices, ownership);
  const ModelBlocks units = UnitsAsBlocks(setting);
  const WrittenPass pass{setting, view, places, units, training, false, &ownership};
  std::vector<Program> programs;
  int64_t samples = 0;
  for (size_t p = 0; p < view.pipelines.size(); ++p) {
    const int64_t first_sample = std::exchange(samples, samples + view.pipelines[p].batch);
    MOTLEY_ASSIGN_OR_RETURN(const PipelineSteps pipeline,
                            StepsOfPipeline(pass, p, schedule.pipelines[p], walks[p], first_sample));
    for (const StageMember& member : pipeline.members) {
      const int ranks = view.actors[view.actor_of_rank[member.rank]].ranks_per_unit;
      for (int32_t r = member.rank; r < member.rank + ranks; ++r) {
        Program& program = programs.emplace_back();
        if (!asked.empty() && !asked[r]) continue;
        program = ProgramOfRank(pass, r, slices[r], pipeline, member);
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

absl::StatusOr<std::vector<Program>> LowerTraining(const Setting& setting, const ResolvedPlan& resolved, const Schedule& schedule,
                                                   const std::vector<PipelineWalk>& walks, const std::vector<bool>& asked) {
  return Write(setting, resolved, schedule, walks, true, asked);
}

absl::StatusOr<std::vector<Program>> LowerEvaluation(const Setting& setting, const Plan& plan) {
  if (!plan.validation) return absl::FailedPreconditionError("the plan has no schedule of a validation pass");
  const Plan pass = ValidationPass(plan, MicrobatchesOf(*plan.validation));
  MOTLEY_ASSIGN_OR_RETURN(const ResolvedPlan resolved, Resolve(setting, pass));
  std::vector<PipelineWalk> walks;
  for (size_t p = 0; p < pass.pipelines.size(); ++p) {
    walks.push_back(WalkSchedule(pass, p, plan.validation->pipelines[p], false));
  }
  return Write(setting, resolved, *plan.validation, walks, false);
}

}  // namespace motley::planner
