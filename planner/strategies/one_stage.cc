#include "planner/strategies/one_stage.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "planner/setting/blank_plan.h"

namespace motley::planner {

absl::Status CheckOneStage(const Setting& setting, const std::string& strategy) {
  for (const auto& [stage, device] : setting.request.pins) {
    if (stage == "stage0") continue;
    return absl::InvalidArgumentError(absl::StrCat("pin ", stage, "=", device, ": strategy ", strategy,
                                                   " makes plans of one stage, stage0; pin to that or use another strategy"));
  }
  return absl::OkStatus();
}

Plan OneStagePlan(const Setting& setting, const std::string& strategy, ScheduleFamily schedule, int64_t layers_per_ministage,
                  StagePlan stage, const std::string& because) {
  const Workload& workload = setting.workload;
  Plan plan = BlankPlan(setting, strategy, schedule);
  stage.ministages.clear();
  const int64_t layers = workload.model.num_layers;
  for (int64_t first = 0; first < layers; first += layers_per_ministage) {
    stage.ministages.push_back({first, std::min(layers, first + layers_per_ministage) - 1});
  }
  plan.pipelines.push_back({{std::move(stage)}});
  const std::vector<UnusedDevice> beside = DevicesBeside(setting, plan, because);
  plan.unused.insert(plan.unused.end(), beside.begin(), beside.end());
  return plan;
}

}  // namespace motley::planner
