#include "planner/lowering/class_programs.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "planner/lowering/model_blocks.h"
#include "planner/lowering/pipeline_places.h"
#include "planner/lowering/pipeline_steps.h"
#include "planner/lowering/rank_passes.h"
#include "planner/plan/schedule_family.h"

namespace motley::planner {
namespace {

// Groups of actors.
class ClassPlaces {
 public:
  ClassPlaces(const Setting& setting, const PlanView& view, const ModelBlocks& blocks) : view_(view) {
    const bool tied = setting.workload.model.tie_embeddings;
    for (int s = 0; s < static_cast<int>(view.stages.size()); ++s) GroupOf({s});
    for (const PipelineView& pipeline : view.pipelines) {
      const int first = pipeline.embedding_stage(), last = pipeline.head_stage();
      places_.tied_group.push_back(tied && first != last ? GroupOf({std::min(first, last), std::max(first, last)}) : -1);
    }
    places_.tp_group.assign(view.actors.size(), -1);
    if (view.pipelines.size() == 1) return;
    for (const std::vector<int>& stages : HoldersOf(view, blocks, tied)) places_.sum_group.push_back(GroupOf(stages));
    OrderRings(blocks.elements, &places_);
  }

  const PipelinePlaces& places() const { return places_; }
  const std::vector<std::vector<int>>& stages_of() const { return stages_of_; }

 private:
  int32_t GroupOf(const std::vector<int>& stages) {
    const auto listed = std::find(stages_of_.begin(), stages_of_.end(), stages);
    if (listed != stages_of_.end()) return static_cast<int32_t>(listed - stages_of_.begin());
    std::vector<int32_t>& group = places_.groups.emplace_back();
    for (const int s : stages) {
      for (const int actor : view_.stages[s].actors) group.push_back(actor);
    }
    stages_of_.push_back(stages);
    return static_cast<int32_t>(stages_of_.size()) - 1;
  }

  const PlanView& view_;
  PipelinePlaces places_;
  std::vector<std::vector<int>> stages_of_;
};

// What is true of one of the class's ranks is written for all.
RankTraits TraitsOfClass(const WrittenPass& pass, const ActorView& actor) {
  RankTraits traits{.training = pass.training, .head = pass.blocks.head()};
  for (int r = 0; r < actor.ranks_per_unit; ++r) {
    if (!pass.view.ranks[actor.first_rank + r].recompute.empty()) traits.recompute = OpSet::All();
  }
  return traits;
}

}  // namespace

absl::StatusOr<ClassPrograms> LowerClasses(const Setting& setting, const PlanView& view, const Schedule& schedule,
                                           const std::vector<PipelineWalk>& walks) {
  ModelBlocks blocks = CoarseBlocks(setting, view);
  const ClassPlaces places(setting, view, blocks);
  const WrittenPass pass{setting, view, places.places(), blocks, true, true};
  ClassPrograms result;
  int64_t samples = 0;
  for (size_t p = 0; p < view.pipelines.size(); ++p) {
    const int64_t first_sample = std::exchange(samples, samples + view.pipelines[p].batch);
    MOTLEY_ASSIGN_OR_RETURN(const PipelineSteps pipeline,
                            StepsOfPipeline(pass, p, schedule.pipelines[p], walks[p], first_sample));
    for (const StageMember& member : pipeline.members) {
      const ActorView& actor = view.actors[member.rank];
      const CopyTraits copies = CopiesOf(pass, actor.first_rank, actor.ranks_per_unit, pipeline.traits[member.stage]);
      const StageSteps& stage = pipeline.stages[member.stage];
      Program& program =
          result.programs.emplace_back(ProgramOf(pass, pipeline, stage, member, TraitsOfClass(pass, actor), copies));
      program.rank = member.rank;
      program.world = static_cast<int32_t>(view.actors.size());
      program.groups = places.places().groups;
    }
  }
  result.blocks = std::move(blocks.parts);
  result.stages_of = places.stages_of();
  return result;
}

}  // namespace motley::planner
