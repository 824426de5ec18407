// Reads the plan's JSON form (docs/use/plan-language.md): strict about keys and types, lenient about what can be derived.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/clean_text.h"
#include "common/base/parse_json.h"
#include "common/base/status_macros.h"
#include "planner/plan/ownership_json.h"
#include "planner/plan/plan.h"
#include "planner/plan/plan_words.h"
#include "planner/plan/schedule_json.h"
#include "planner/util/json_reader.h"

namespace motley::planner {
namespace {

// Other systems' plans have these; "unknown key" would not say that the idea, not the spelling, is the matter.
void RefuseParallelism(const JsonReader& reader) {
  for (const char* key : {"context_parallel", "context_parallel_size", "cp"}) {
    if (reader.Has(key)) reader.Fail(absl::StrCat(key, ": context parallelism is not supported"));
  }
  for (const char* key : {"expert_parallel", "expert_parallel_size", "ep"}) {
    if (reader.Has(key)) reader.Fail(absl::StrCat(key, ": mixture of experts is not supported"));
  }
}

void ReadMemory(const JsonReader& reader, MemoryByPurpose* memory) {
  reader.Keys(
      {"parameters", "gradients", "optimizer", "gathered", "slots", "boundaries", "saved", "workspace", "context", "host"});
  for (const MemoryPurposeTraits& purpose : kMemoryPurposes) reader.Get(purpose.name, &(memory->*purpose.bytes));
  reader.Get("host", &memory->host);
}

void ReadOffload(const JsonReader& reader, RankPlan* rank) {
  reader.ForEach([rank](const JsonReader& item) {
    std::string what;
    item.Read(&what);
    if (!AddWord(what, &rank->offload)) {
      item.Fail(absl::StrCat(Quoted(what), " is not known; use ", absl::StrJoin(WordsOf(OffloadKinds::All()), ", ")));
    }
  });
}

void ReadRank(const JsonReader& reader, RankPlan* rank) {
  reader.Keys({"device", "device_model", "recompute", "shard_ratio", "tp_share", "offload", "predicted"});
  std::string device;
  reader.Get("device", &device);
  rank->device = DeviceId(device);
  reader.Get("device_model", &rank->device_model);
  if (reader.Has("recompute")) {
    std::string text = ToText(rank->recompute);
    reader.Get("recompute", &text);
    const absl::StatusOr<OpSet> ops = ParseOpSet(text);
    if (!ops.ok()) return reader["recompute"].Fail(std::string(ops.status().message()));
    rank->recompute = *ops;
  }
  reader.Get("shard_ratio", &rank->shard_ratio);
  reader.Get("tp_share", &rank->tp_share);
  if (reader.Has("offload")) ReadOffload(reader["offload"], rank);
  if (!reader.Has("predicted")) return;
  const JsonReader predicted = reader["predicted"];
  predicted.Keys({"busy_seconds", "peak_bytes", "memory", "most", "waits"});
  predicted.Get("busy_seconds", &rank->predicted.busy_seconds);
  predicted.Get("peak_bytes", &rank->predicted.peak_bytes);
  if (predicted.Has("memory")) ReadMemory(predicted["memory"], &rank->predicted.memory);
  if (predicted.Has("most")) ReadMemory(predicted["most"], &rank->predicted.most);
  if (!predicted.Has("waits")) return;
  const JsonReader waits = predicted["waits"];
  waits.Keys({"inputs", "parameters", "gradients", "optimizer"});
  for (const HostPurposeTraits& purpose : kHostPurposes) waits.Get(purpose.name, &(rank->predicted.waits.*purpose.bytes));
}

void ReadStage(const JsonReader& reader, int version, StagePlan* stage) {
  RefuseParallelism(reader);
  if (reader.Has("placement") && version >= kFirstWithOwnership) {
    return reader.Fail("placement: the plan's own `ownership` says it since schema version 4");
  }
  reader.Keys({"ministages", "zero_stage", "in_flight", "prefetch", "units", "placement"});
  if (reader.Has("ministages")) {
    reader["ministages"].ForEach([stage](const JsonReader& item) {
      std::vector<int64_t> range;
      item.Read(&range);
      if (range.size() != 2) return item.Fail("must be [first layer, last layer]");
      stage->ministages.push_back({range[0], range[1]});
    });
  }
  reader.Get("zero_stage", &stage->zero_stage);
  reader.Get("in_flight", &stage->in_flight);
  reader.Get("prefetch", &stage->prefetch);
  if (!reader.Has("units")) return reader.Fail("units is missing");
  reader["units"].ForEach([stage](const JsonReader& item) {
    UnitPlan& unit = stage->units.emplace_back();
    RefuseParallelism(item);
    item.Keys({"ranks", "microbatches"});
    item.Get("microbatches", &unit.microbatches);
    if (!item.Has("ranks")) return item.Fail("ranks is missing");
    item["ranks"].ForEach([&unit](const JsonReader& rank) { ReadRank(rank, &unit.ranks.emplace_back()); });
  });
}

void ReadPrediction(const JsonReader& reader, PlanPrediction* predicted) {
  // The gap follows from the others.
  reader.Keys({"step_seconds", "as_run", "as_published", "tokens_per_second", "binding_constraint", "mfu", "hfu", "idle_share",
               "tokens_per_dollar", "lower_bound_seconds", "gap", "estimated", "low_seconds", "high_seconds", "notes"});
  reader.Get("step_seconds", &predicted->step_seconds);
  reader.Get("as_run", &predicted->as_run);
  reader.Get("as_published", &predicted->as_published);
  reader.Get("tokens_per_second", &predicted->tokens_per_second);
  reader.Get("binding_constraint", &predicted->binding_constraint);
  reader.Get("mfu", &predicted->mfu);
  reader.Get("hfu", &predicted->hfu);
  reader.Get("idle_share", &predicted->idle_share);
  reader.Get("tokens_per_dollar", &predicted->tokens_per_dollar);
  reader.Get("lower_bound_seconds", &predicted->lower_bound_seconds);
  reader.Get("estimated", &predicted->estimated);
  reader.Get("low_seconds", &predicted->low_seconds);
  reader.Get("high_seconds", &predicted->high_seconds);
  reader.Get("notes", &predicted->notes);
}

// A value spelled by name: `parse` gives it or the error.
template <typename T, typename F>
void ReadName(const JsonReader& reader, const char* key, T* out, F&& parse) {
  if (!reader.Has(key)) return;
  std::string name;
  reader[key].Read(&name);
  if (auto parsed = parse(name); parsed.ok()) {
    *out = *parsed;
  } else {
    reader[key].Fail(Echo(std::string(parsed.status().message())));
  }
}

void ReadPlan(const JsonReader& reader, Plan* plan) {
  // The version first: another version's keys are no news.
  int version = kPlanSchemaVersion;
  reader.Get("schema_version", &version);
  if (version < 1 || version > kPlanSchemaVersion) {
    reader.Fail(absl::StrCat("schema_version ", version, " is not known, this build reads 1 to ", kPlanSchemaVersion,
                             "; plan again, or use the motley that wrote it"));
  }
  plan->schema_version = version;
  RefuseParallelism(reader);
  reader.Keys({"schema_version", "strategy", "generation", "epoch", "cluster", "model", "global_batch", "seq_len", "dtype",
               "schedule", "pipelines_zero_stage", "optimizer_steps", "pipelines", "unused", "predicted", "report",
               "cluster_file", "ownership", "schedules"});
  int64_t epoch = 0;
  reader.Get("epoch", &epoch);  // its name in older plans
  reader.Get("generation", &epoch);
  plan->epoch = Epoch(epoch);
  reader.Get("strategy", &plan->strategy);
  reader.Get("cluster", &plan->cluster);
  reader.Get("cluster_file", &plan->cluster_file);
  reader.Get("model", &plan->model);
  reader.Get("global_batch", &plan->global_batch);
  reader.Get("seq_len", &plan->seq_len);
  ReadName(reader, "dtype", &plan->dtype, ParseDType);
  ReadName(reader, "schedule", &plan->schedule, ParseSchedule);
  reader.Get("pipelines_zero_stage", &plan->pipelines_zero_stage);
  ReadName(reader, "optimizer_steps", &plan->optimizer_steps, ParseOptimizerSteps);
  if (!reader.Has("pipelines")) return reader.Fail("pipelines is missing");
  reader["pipelines"].ForEach([plan, version](const JsonReader& item) {
    PipelinePlan& pipeline = plan->pipelines.emplace_back();
    item.Keys({"stages"});
    if (!item.Has("stages")) return item.Fail("stages is missing");
    item["stages"].ForEach([&](const JsonReader& stage) { ReadStage(stage, version, &pipeline.stages.emplace_back()); });
  });
  if (reader.Has("unused")) {
    reader["unused"].ForEach([plan](const JsonReader& item) {
      item.Keys({"device", "because"});
      std::string device, because;
      item.Get("device", &device);
      item.Get("because", &because);
      plan->unused.push_back({DeviceId(device), because});
    });
  }
  if (reader.Has("predicted")) ReadPrediction(reader["predicted"], &plan->predicted);
  if (reader.Has("ownership")) ReadOwnership(reader["ownership"], plan);
  if (!reader.Has("schedules")) return;
  const JsonReader schedules = reader["schedules"];
  schedules.Keys({"training", "validation"});
  if (schedules.Has("training")) ReadSchedule(schedules["training"], *plan, &plan->training.emplace());
  if (schedules.Has("validation")) ReadSchedule(schedules["validation"], *plan, &plan->validation.emplace());
}

}  // namespace

absl::StatusOr<Plan> PlanFromJson(const std::string& text) {
  if (static_cast<int64_t>(text.size()) > kLongestPlanBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("plan: ", text.size(), " bytes; a plan has at most ", kLongestPlanBytes, ", this is something else"));
  }
  MOTLEY_ASSIGN_OR_RETURN(const JsonReader::Json json, ParseOrderedJson(text, "plan"));
  Plan plan;
  absl::Status status;
  ReadPlan(JsonReader(json, "plan", &status), &plan);
  MOTLEY_RETURN_IF_ERROR(status);
  return plan;
}

}  // namespace motley::planner
