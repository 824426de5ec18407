#include "planner/live/memory_probe.h"

#include <utility>

#include "common/base/status_macros.h"
#include "planner/plan/each_rank.h"
#include "planner/pricing/price.h"
#include "planner/setting/blank_plan.h"

namespace motley::planner {

absl::StatusOr<TrialPlan> PlanTrial(const PlannerInput& input, int64_t samples) {
  PlannerInput without_limit = input;
  without_limit.devices.at(0).memory_bytes = 0;
  without_limit.compute.at(0).usable_bytes = 0;
  without_limit.config.training.global_batch_size = samples;
  without_limit.predicts_links = true;  // there are none
  MOTLEY_ASSIGN_OR_RETURN(const JobSetting job, SettingOf(without_limit));
  Plan plan = BlankPlan(*job.setting, "probe", ScheduleFamily::kLayered);
  RankPlan rank = RankOn(*job.setting, 0);
  rank.shard_ratio = 1;
  StagePlan stage;
  stage.ministages = {{0, input.model.num_layers - 1}};
  stage.units = {{{std::move(rank)}, {samples}}};
  plan.pipelines = {{{std::move(stage)}}};
  MOTLEY_ASSIGN_OR_RETURN(Evaluation priced, Price(*job.setting, std::move(plan)));
  if (priced.programs.size() != 1 || !priced.plan.ownership) return absl::InternalError("a trial's plan has no program");
  TrialPlan trial{std::move(priced.programs[0]), *std::move(priced.plan.ownership), {}};
  ForEachRank(priced.plan, [&trial](const RankPlan& each) { trial.memory = each.predicted.memory; });
  return trial;
}

bool LedgerAllows(const DeviceDescription& device, int64_t bytes) {
  return static_cast<double>(bytes) <= (1 - kProbeReserve) * static_cast<double>(device.memory_bytes);
}

absl::StatusOr<int64_t> MostLayers(const PlannerInput& input) {
  int64_t low = 0, high = input.model.num_layers;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    PlannerInput fewer = input;
    fewer.model = FirstLayers(input.model, middle);
    MOTLEY_ASSIGN_OR_RETURN(const TrialPlan trial, PlanTrial(fewer, 1));
    (LedgerAllows(input.devices.at(0), trial.memory.total()) ? low : high) = middle;
  }
  return low;
}

ModelShape FirstLayers(ModelShape model, int64_t layers) {
  model.num_layers = layers;
  if (!model.layer_kinds.empty()) model.layer_kinds.resize(static_cast<size_t>(layers));
  return model;
}

}  // namespace motley::planner
