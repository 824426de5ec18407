#include "planner/live/plan_builder.h"

#include "planner/plan/placement.h"

namespace motley::planner {

Plan BuildPlan(const PlannerInput& input, const CostModel& cost, const std::string& strategy,
               const std::vector<DeviceDuty>& duties, std::vector<UnusedDevice> unused) {
  Plan plan;
  plan.strategy = strategy;
  plan.epoch = input.epoch;
  plan.global_batch = input.config.training.global_batch_size;
  plan.seq_len = input.config.training.seq_len;
  plan.dtype = cost.dtype();
  plan.unused = std::move(unused);
  StagePlan stage;
  stage.ministages = {{0, input.model.num_layers - 1}};
  std::vector<double> shares;
  for (const DeviceDuty& duty : duties) shares.push_back(duty.share);
  stage.placement = PlaceByShares(cost.layout(), shares);
  for (size_t r = 0; r < duties.size(); ++r) {
    const DeviceDescription& device = input.devices[duties[r].device];
    int64_t owned = 0;
    for (const UnitPlacement& unit : stage.placement) owned += unit.bounds[r + 1] - unit.bounds[r];
    RankPlan rank;
    rank.device = device.id;
    rank.device_model = device.model;
    rank.recompute = duties[r].recompute ? "full" : "none";
    rank.shard_ratio = static_cast<double>(owned) / static_cast<double>(cost.num_parameters());
    stage.units.push_back({{rank}, Microbatches(duties[r].batch, duties[r].microbatch)});
  }
  plan.pipelines = {{{std::move(stage)}}};
  return plan;
}

PlannerInput Restrict(const PlannerInput& input, const std::vector<size_t>& indices) {
  PlannerInput result = input;
  result.devices.clear();
  result.compute.clear();
  for (const size_t i : indices) {
    result.devices.push_back(input.devices[i]);
    result.compute.push_back(input.compute[i]);
  }
  return result;
}

}  // namespace motley::planner
