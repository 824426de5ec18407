// Plain data parallelism as people tune it by hand: every device the same batch and shard, one microbatch size for all, a power
// of two; recomputation of all layers or of none. `even` and `fsdp` search it with different schedules.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"
#include "planner/setting/setting.h"

namespace motley::planner {

struct UniformSearch {
  std::string strategy;
  ScheduleFamily schedule = ScheduleFamily::kLayered;
  std::vector<int> zero_stages;  // tried in this order; of equal times the first wins
  std::vector<bool> recompute;
};

// The fastest by EstimatePlan of what fits. RESOURCE_EXHAUSTED: nothing does; names the device that lacks most and the bytes, for
// the most frugal attempt.
absl::StatusOr<Plan> PlanUniform(const Setting& setting, const UniformSearch& search);

}  // namespace motley::planner
