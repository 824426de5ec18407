#include "planner/plan_builder.h"

#include <algorithm>
#include <cmath>

namespace motley::planner {

std::vector<UnitPlacement> PlaceByShares(const std::vector<UnitSpec>& layout, const std::vector<double>& shares) {
  size_t last_owner = 0;
  for (size_t r = 0; r < shares.size(); ++r) {
    if (shares[r] > 0) last_owner = r;
  }
  std::vector<UnitPlacement> placement;
  for (const UnitSpec& unit : layout) {
    std::vector<int64_t> bounds = {0};
    double sum = 0;
    for (size_t r = 0; r < shares.size(); ++r) {
      sum += shares[r];
      const auto bound = static_cast<int64_t>(std::llround(sum * static_cast<double>(unit.num_elements)));
      bounds.push_back(r >= last_owner ? unit.num_elements : std::clamp(bound, bounds.back(), unit.num_elements));
    }
    placement.push_back({std::move(bounds)});
  }
  return placement;
}

std::vector<int64_t> Microbatches(int64_t batch, int64_t microbatch) {
  if (batch == 0) return {};
  std::vector<int64_t> sizes(static_cast<size_t>(batch / microbatch), microbatch);
  if (batch % microbatch != 0) sizes.push_back(batch % microbatch);
  return sizes;
}

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
