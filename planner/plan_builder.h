// From a strategy's answer (batch, microbatch, recomputation and share of each device) to a plan of one stage.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/plan.h"
#include "planner/planner.h"
#include "planner/simulator/cost_model.h"

namespace motley::planner {

struct DeviceDuty {
  size_t device = 0;  // index into the input's devices
  int64_t batch = 0, microbatch = 0;
  bool recompute = false;
  double share = 0;  // of the training state; all duties' shares add up to 1
};

// Every unit is cut at the same ratios, rounded to whole elements. Shares of 0 own nothing.
std::vector<UnitPlacement> PlaceByShares(const std::vector<UnitSpec>& layout, const std::vector<double>& shares);

// b samples in microbatches of m, the last one smaller.
std::vector<int64_t> Microbatches(int64_t batch, int64_t microbatch);

// `duties` in the order of the input's devices. Predictions are left empty.
Plan BuildPlan(const PlannerInput& input, const CostModel& cost, const std::string& strategy,
               const std::vector<DeviceDuty>& duties, std::vector<UnusedDevice> unused);

// The input restricted to the devices at `indices`; their collectives are taken to cost what all devices' do.
PlannerInput Restrict(const PlannerInput& input, const std::vector<size_t>& indices);

}  // namespace motley::planner
