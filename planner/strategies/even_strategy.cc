// even: the layered schedule with equal batches and shards: what uneven batches and shards are measured against, all else equal.
#include "planner/strategies/catalog.h"
#include "planner/strategies/uniform_data_parallel.h"

namespace motley::planner {

absl::StatusOr<Plan> PlanEven(const Setting& setting) {
  return PlanUniform(setting, {"even", ScheduleFamily::kLayered, {setting.request.zero_stage.value_or(3)}, {false, true}});
}

}  // namespace motley::planner
