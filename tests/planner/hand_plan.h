// Plans of one stage written down in few words: who computes how many samples in which microbatches, and owns how much.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/model/parameters.h"
#include "planner/live/live_inputs.h"
#include "planner/plan/ownership.h"
#include "planner/plan/placement.h"
#include "planner/plan/plan.h"

namespace motley::planner {

struct DeviceDuty {
  size_t device = 0;  // index into the input's devices
  int64_t batch = 0, microbatch = 0;
  bool recompute = false;
  double share = 0;  // of the training state; all duties' shares add up to 1
};

// With the ownership that the shares come to, as a finished plan has it; without predictions.
inline Plan HandPlan(const PlannerInput& input, const std::string& strategy, const std::vector<DeviceDuty>& duties,
                     std::vector<UnusedDevice> unused = {}) {
  Plan plan;
  plan.strategy = strategy;
  plan.epoch = input.epoch;
  plan.global_batch = input.config.training.global_batch_size;
  plan.seq_len = input.config.training.seq_len;
  plan.dtype = *ParseDType(input.config.training.dtype);
  plan.unused = std::move(unused);
  StagePlan stage;
  stage.ministages = {{0, input.model.num_layers - 1}};
  for (const DeviceDuty& duty : duties) {
    RankPlan rank;
    rank.device = input.devices[duty.device].id;
    rank.device_model = input.devices[duty.device].model;
    rank.recompute = duty.recompute ? OpSet::All() : OpSet::None();
    rank.shard_ratio = duty.share;
    stage.units.push_back({{rank}, Microbatches(duty.batch, duty.microbatch)});
  }
  plan.pipelines = {{{std::move(stage)}}};
  GiveOwnership(input.model, &plan);
  return plan;
}

}  // namespace motley::planner
