// From a strategy's answer (batch, microbatch, recomputation and share of each device) to a plan of one stage.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/live/cost_model.h"
#include "planner/live/planner.h"
#include "planner/plan/plan.h"

namespace motley::planner {

struct DeviceDuty {
  size_t device = 0;  // index into the input's devices
  int64_t batch = 0, microbatch = 0;
  bool recompute = false;
  double share = 0;  // of the training state; all duties' shares add up to 1
};

// `duties` in the order of the input's devices. Predictions are left empty.
Plan BuildPlan(const PlannerInput& input, const CostModel& cost, const std::string& strategy,
               const std::vector<DeviceDuty>& duties, std::vector<UnusedDevice> unused);

// The input restricted to the devices at `indices`; their collectives are taken to cost what all devices' do.
PlannerInput Restrict(const PlannerInput& input, const std::vector<size_t>& indices);

}  // namespace motley::planner
