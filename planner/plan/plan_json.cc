// Writes the plan's JSON form (docs/use/plan-language.md). Keys are in a fixed order and numbers in their shortest exact form, so
// equal plans give equal bytes.
#include "common/base/memory_by_purpose.h"
#include "nlohmann/json.hpp"
#include "planner/plan/ownership_json.h"
#include "planner/plan/plan.h"
#include "planner/plan/plan_words.h"
#include "planner/plan/schedule_json.h"

namespace motley::planner {
namespace {

using Json = nlohmann::ordered_json;

Json MemoryToJson(const MemoryByPurpose& m) {
  Json json;
  for (const MemoryPurposeTraits& purpose : kMemoryPurposes) json[purpose.name] = m.*purpose.bytes;
  json["host"] = m.host;
  return json;
}

// With `ownership` the plan says elsewhere what the rank owns.
Json RankToJson(const RankPlan& rank, bool ownership) {
  Json predicted = {{"busy_seconds", rank.predicted.busy_seconds}, {"peak_bytes", rank.predicted.peak_bytes}};
  if (rank.predicted.memory != MemoryByPurpose{}) predicted["memory"] = MemoryToJson(rank.predicted.memory);
  if (rank.predicted.most != MemoryByPurpose{}) predicted["most"] = MemoryToJson(rank.predicted.most);
  if (rank.predicted.waits != HostMemoryByPurpose{}) {
    for (const HostPurposeTraits& purpose : kHostPurposes) predicted["waits"][purpose.name] = rank.predicted.waits.*purpose.bytes;
  }
  Json json = {{"device", rank.device.value()}, {"device_model", rank.device_model}, {"recompute", ToText(rank.recompute)}};
  if (!ownership) json["shard_ratio"] = rank.shard_ratio;
  json["tp_share"] = rank.tp_share;
  json["offload"] = WordsOf(rank.offload);
  json["predicted"] = std::move(predicted);
  return json;
}

Json StageToJson(const StagePlan& stage, bool ownership) {
  Json ministages = Json::array(), units = Json::array();
  for (const LayerRange& range : stage.ministages) ministages.push_back({range.first, range.last});
  for (const UnitPlan& unit : stage.units) {
    Json ranks = Json::array();
    for (const RankPlan& rank : unit.ranks) ranks.push_back(RankToJson(rank, ownership));
    units.push_back({{"ranks", std::move(ranks)}, {"microbatches", unit.microbatches}});
  }
  Json json = {{"ministages", std::move(ministages)}, {"zero_stage", stage.zero_stage}, {"units", std::move(units)}};
  if (stage.in_flight > 0) json["in_flight"] = stage.in_flight;
  if (stage.prefetch != 1) json["prefetch"] = stage.prefetch;
  return json;
}

Json PredictionToJson(const PlanPrediction& p) {
  Json json = {{"step_seconds", p.step_seconds},
               {"as_run", p.as_run},
               {"tokens_per_second", p.tokens_per_second},
               {"binding_constraint", p.binding_constraint},
               {"mfu", p.mfu},
               {"hfu", p.hfu},
               {"idle_share", p.idle_share},
               {"tokens_per_dollar", p.tokens_per_dollar},
               {"lower_bound_seconds", p.lower_bound_seconds},
               {"gap", p.gap()},
               {"estimated", p.estimated},
               {"low_seconds", p.low_seconds},
               {"high_seconds", p.high_seconds},
               {"notes", p.notes}};
  if (p.as_published) json["as_published"] = true;
  return json;
}

Json SchedulesToJson(const Plan& plan) {
  Json schedules = Json::object();
  if (plan.training) schedules["training"] = ScheduleToJson(plan, *plan.training);
  if (plan.validation) schedules["validation"] = ScheduleToJson(plan, *plan.validation);
  return schedules;
}

}  // namespace

std::string ToJson(const Plan& plan, int indent) {
  Json pipelines = Json::array(), unused = Json::array();
  for (const PipelinePlan& pipeline : plan.pipelines) {
    Json stages = Json::array();
    for (const StagePlan& stage : pipeline.stages) stages.push_back(StageToJson(stage, plan.ownership.has_value()));
    pipelines.push_back({{"stages", std::move(stages)}});
  }
  for (const UnusedDevice& device : plan.unused) {
    unused.push_back({{"device", device.device.value()}, {"because", device.because}});
  }
  Json json = {{"schema_version", kPlanSchemaVersion},
               {"strategy", plan.strategy},
               {"generation", plan.epoch.value()},
               {"cluster", plan.cluster},
               {"model", plan.model},
               {"global_batch", plan.global_batch},
               {"seq_len", plan.seq_len},
               {"dtype", std::string(DTypeName(plan.dtype))},
               {"schedule", std::string(ScheduleName(plan.schedule))},
               {"pipelines_zero_stage", plan.pipelines_zero_stage},
               {"pipelines", std::move(pipelines)},
               {"unused", std::move(unused)},
               {"predicted", PredictionToJson(plan.predicted)}};
  if (plan.optimizer_steps != OptimizerSteps::kAtEnd) json["optimizer_steps"] = std::string(WordOf(plan.optimizer_steps));
  if (!plan.cluster_file.empty()) json["cluster_file"] = plan.cluster_file;
  if (plan.ownership) json["ownership"] = OwnershipToJson(plan);
  if (plan.training || plan.validation) json["schedules"] = SchedulesToJson(plan);
  // Names may hold bytes that are not UTF-8 (a path): replaced, not thrown.
  return json.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

}  // namespace motley::planner
