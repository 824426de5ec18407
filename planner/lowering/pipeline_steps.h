// The passes of one pipeline: what its stages do together and each member of them in it. Part of the program writers, of ranks
// (program_writer.h) and of classes of units (class_programs.h).
#pragma once

#include <vector>

#include "absl/status/statusor.h"
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
  // Programs that only price the plan: members are named by their actors, steps and microbatches stand together where they can,
  // and what nobody shards (ZeRO 0) is stepped by every rank, as published systems do.
  bool merged = false;
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

// A member's program without its rank and groups. Ranks of a tensor-parallel unit have `slice`, the stage as they see it.
Program ProgramOf(const WrittenPass& pass, const PipelineSteps& pipeline, const StageSteps& slice, const StageMember& member,
                  const RankTraits& rank, const CopyTraits& copies);

}  // namespace motley::planner
