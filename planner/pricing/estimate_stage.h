// What the estimator (evaluate.h) knows of a stage: seconds of its chunks and of its transfers, summed once.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/lowering/class_seconds.h"
#include "planner/lowering/plan_view.h"
#include "planner/pricing/stage_work.h"
#include "planner/setting/setting.h"

namespace motley::planner {

// One pass of a chunk: all microbatches of the slowest actor, the first one of the quickest, the last one of the slowest.
struct ChunkSeconds {
  double all = 0, first = 0, last = 0;
};

struct StageEstimate {
  StageWork work;
  std::vector<ChunkSeconds> forward, backward;                        // by chunk; backward with recomputation
  std::vector<double> gather_seconds, reduce_seconds, fetch_seconds;  // by chunk
  double gather_all = 0, reduce_all = 0;                              // of the whole stage at once
  double optimizer = 0;                                               // of the slowest actor, its host copies included
  int64_t rounds = 0;                                                 // the most microbatches of a unit
  double first_samples = 0;                                           // of the smallest microbatch
};

// Seconds of compute and a transfer beside it, which costs the compute all but `overlap` (Cluster::overlap_efficiency) of it.
double Hidden(double compute, double transfer, double overlap);
StageEstimate EstimateStage(const Setting& setting, const PlanView& view, int stage);
// Bytes of parameters that the stage holds of `part`.
double PartBytes(const Setting& setting, const StageView& stage, const Part& part);

}  // namespace motley::planner
