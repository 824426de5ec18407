// fsdp: PyTorch's fully sharded data parallelism, honestly tuned (Zhao et al., arXiv 2304.11277). Gradient accumulation runs
// forward and backward of each microbatch in turn, so sharded parameters are gathered and gradients reduced for every microbatch.
// As published: everything sharded (FULL_SHARD, ZeRO 3). Tuned: also SHARD_GRAD_OP (ZeRO 2), which keeps the parameters.
#include "planner/strategies/catalog.h"
#include "planner/strategies/uniform_data_parallel.h"

namespace motley::planner {

absl::StatusOr<Plan> PlanFsdp(const Setting& setting) {
  UniformSearch search{"fsdp", ScheduleFamily::k1F1B, {3, 2}, {false, true}};
  if (setting.request.fidelity == Fidelity::kPublished) search.zero_stages = {3};
  if (setting.request.zero_stage) search.zero_stages = {*setting.request.zero_stage};
  return PlanUniform(setting, search);
}

}  // namespace motley::planner
