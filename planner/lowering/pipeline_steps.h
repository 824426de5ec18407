// The passes of one pipeline: what its stages do together and each member of them in it. Part of the program writers, of ranks
// (program_writer.h) and of classes of units (class_programs.h).
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "common/program/ownership.h"
#include "planner/lowering/model_blocks.h"
#include "planner/lowering/pipeline_places.h"
#include "planner/lowering/rank_passes.h"
#include "planner/lowering/stage_steps.h"
#include "planner/lowering/transfer_pass.h"
#include "planner/plan/plan.h"
#include "planner/plan/schedule.h"
#include "planner/plan/schedule_walk.h"
#include "planner/setting/setting.h"
#include "planner/view/plan_view.h"

namespace motley::planner {

// Whose programs are written. A member of a stage is an actor of `view`.
struct WrittenPass {
  const Setting& setting;
  const PlanView& view;
  const PipelinePlaces& places;
  const ModelBlocks& blocks;
  bool training = true;
  // Programs of searches: members are named by their actors, steps and microbatches stand together where they can.
  bool merged = false;
  const Ownership* ownership = nullptr;  // of ranks' programs: who owns what of the units
};

struct PipelineSteps {
  PipelineSchedule schedule;  // samples of the global batch
  std::vector<StageTraits> traits;
  std::vector<StageSteps> stages;
  std::vector<StageMember> members;
};

// `schedule` and its `walk`: of pipeline `p`, whose first sample in the global batch is `first_sample`. Errors of WithTransfers.
absl::StatusOr<PipelineSteps> StepsOfPipeline(const WrittenPass& pass, size_t p, const PipelineSchedule& schedule,
                                              const PipelineWalk& walk, int64_t first_sample);

// What of the ranks waits in host memory: of a rank, or of all of a class's unit, for which one program stands. `traits`: of
// their stage.
CopyTraits CopiesOf(const WrittenPass& pass, int first_rank, int num_ranks, const StageTraits& traits);

// A member's program without its rank and groups. Ranks of a tensor-parallel unit have `slice`, the stage as they see it.
Program ProgramOf(const WrittenPass& pass, const PipelineSteps& pipeline, const StageSteps& slice, const StageMember& member,
                  const RankTraits& rank, const CopyTraits& copies);

}  // namespace motley::planner
