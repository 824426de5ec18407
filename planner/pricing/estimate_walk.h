// Goes through a pipeline's schedule with seconds: the part of the estimator (evaluate.h) for pipelines that run forward and
// backward in turn. The order is the schedule's own (planner/scheduling/stage_orders.h); passes wait for it, for their samples
// and for lanes, so stages with unlike microbatches, slow borders and limits of their own make each other wait.
#pragma once

#include <vector>

#include "planner/plan/family_order.h"
#include "planner/plan/schedule_family.h"
#include "planner/pricing/estimate_borders.h"

namespace motley::planner {

// A round of a virtual stage. Rounds cut the pipeline's batch into equal parts; stages may have different numbers of them.
struct TimedPass {
  double part = 1;  // of its stage's layers
  double forward_seconds = 0;
  double backward_seconds = 0;  // of a split one: of the inputs' gradient
  double ahead_seconds = 0;     // of the backward: what is recomputed before the gradient comes
  double weight_seconds = 0;    // of a split one: of the weights' gradient
  Border border;                // behind it
  bool operator==(const TimedPass&) const = default;
};

struct TimedPipeline {
  std::vector<StagePlace> places;     // by stage
  std::vector<double> start_seconds;  // by stage: before its first forward may begin
  std::vector<TimedPass> passes;      // by virtual stage
  bool operator==(const TimedPipeline&) const = default;
};

// When each stage has ended its last pass. A stage sends one transfer after the other, to all sides. Beyond 192 rounds the first
// 128 are followed and the rest go on at the pace of the second 64, where all stages' rounds are in step (equal, or a half, a
// quarter); stages that are not are followed to the end. O(rounds x virtual stages x stages).
std::vector<double> EndsOfWalk(ScheduleFamily family, const TimedPipeline& pipeline);

}  // namespace motley::planner
