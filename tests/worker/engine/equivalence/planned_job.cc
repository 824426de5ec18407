#include "tests/worker/engine/equivalence/planned_job.h"

#include "planner/plan/each_rank.h"

namespace motley::engine {

planner::Plan OneDevicePlan(const TinyJob& job) {
  planner::Plan plan;
  plan.strategy = "one device";
  plan.epoch = Epoch(1);
  plan.global_batch = job.config.training.global_batch_size;
  plan.seq_len = job.config.training.seq_len;
  plan.dtype = PrecisionOf(job.config.training)->compute;
  planner::StagePlan stage;
  stage.ministages = {{0, job.model.num_layers - 1}};
  planner::RankPlan rank;
  rank.device = DeviceId("n0/gpu0");
  rank.shard_ratio = 1;
  stage.units = {{{rank}, {plan.global_batch}}};
  plan.pipelines = {{{stage}}};
  return plan;
}

PlannedJob Offloading(PlannedJob planned, const OffloadKinds& kinds) {
  planner::ForEachRank(planned.plan, [&kinds](planner::RankPlan& rank) { rank.offload = kinds; });
  return planned;
}

}  // namespace motley::engine
