// The plan's JSON form (docs/plan-language.md): strict about keys and types, lenient about what can be derived.
#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "nlohmann/json.hpp"
#include "planner/plan.h"

namespace motley::planner {
namespace {

using Json = nlohmann::ordered_json;

Json RankToJson(const RankPlan& rank) {
  return {{"device", rank.device.value()},
          {"device_model", rank.device_model},
          {"recompute", rank.recompute},
          {"shard_ratio", rank.shard_ratio},
          {"predicted", {{"busy_seconds", rank.predicted.busy_seconds}, {"peak_bytes", rank.predicted.peak_bytes}}}};
}

Json StageToJson(const StagePlan& stage) {
  Json ministages = Json::array(), units = Json::array(), placement = Json::array();
  for (const LayerRange& range : stage.ministages) ministages.push_back({range.first, range.last});
  for (const UnitPlan& unit : stage.units) {
    Json ranks = Json::array();
    for (const RankPlan& rank : unit.ranks) ranks.push_back(RankToJson(rank));
    units.push_back({{"ranks", std::move(ranks)}, {"microbatches", unit.microbatches}});
  }
  for (const UnitPlacement& unit : stage.placement) placement.push_back(unit.bounds);
  return {{"ministages", std::move(ministages)}, {"units", std::move(units)}, {"placement", std::move(placement)}};
}

// One value and its path, so that every error can name the place. The first error sticks.
class Reader {
 public:
  Reader(const Json& json, std::string path, absl::Status* status) : json_(json), path_(std::move(path)), status_(status) {}

  void Keys(std::initializer_list<const char*> known) const {
    if (!json_.is_object()) return Fail("must be an object");
    for (const auto& [key, value] : json_.items()) {
      bool found = false;
      for (const char* k : known) found |= key == k;
      if (!found) Fail(absl::StrCat("unknown key '", key, "'"));
    }
  }
  bool Has(const char* key) const { return json_.is_object() && json_.contains(key); }
  Reader operator[](const char* key) const { return Reader(json_.at(key), path_ + "." + key, status_); }

  // Leaves `*out` when the key is missing.
  template <typename T>
  void Get(const char* key, T* out) const {
    if (Has(key)) (*this)[key].Read(out);
  }
  void Read(std::string* out) const { json_.is_string() ? void(*out = json_.get<std::string>()) : Fail("must be a string"); }
  void Read(double* out) const { json_.is_number() ? void(*out = json_.get<double>()) : Fail("must be a number"); }
  void Read(int64_t* out) const { json_.is_number_integer() ? void(*out = json_.get<int64_t>()) : Fail("must be an integer"); }
  template <typename T>
  void Read(std::vector<T>* out) const {
    ForEach([out](const Reader& item) { item.Read(&out->emplace_back()); });
  }
  template <typename F>
  void ForEach(F&& f) const {
    if (!json_.is_array()) return Fail("must be a list");
    for (size_t i = 0; i < json_.size(); ++i) f(Reader(json_[i], absl::StrCat(path_, "[", i, "]"), status_));
  }
  void Fail(const std::string& what) const {
    if (status_->ok()) *status_ = absl::InvalidArgumentError(absl::StrCat(path_, ": ", what));
  }

 private:
  const Json& json_;
  const std::string path_;
  absl::Status* const status_;
};

void ReadRank(const Reader& reader, RankPlan* rank) {
  reader.Keys({"device", "device_model", "recompute", "shard_ratio", "predicted"});
  std::string device;
  reader.Get("device", &device);
  rank->device = DeviceId(device);
  reader.Get("device_model", &rank->device_model);
  reader.Get("recompute", &rank->recompute);
  reader.Get("shard_ratio", &rank->shard_ratio);
  if (!reader.Has("predicted")) return;
  reader["predicted"].Keys({"busy_seconds", "peak_bytes"});
  reader["predicted"].Get("busy_seconds", &rank->predicted.busy_seconds);
  reader["predicted"].Get("peak_bytes", &rank->predicted.peak_bytes);
}

void ReadStage(const Reader& reader, StagePlan* stage) {
  reader.Keys({"ministages", "units", "placement"});
  if (reader.Has("ministages")) {
    reader["ministages"].ForEach([stage](const Reader& item) {
      std::vector<int64_t> range;
      item.Read(&range);
      if (range.size() != 2) return item.Fail("must be [first layer, last layer]");
      stage->ministages.push_back({range[0], range[1]});
    });
  }
  if (!reader.Has("units")) return reader.Fail("units is missing");
  reader["units"].ForEach([stage](const Reader& item) {
    UnitPlan& unit = stage->units.emplace_back();
    item.Keys({"ranks", "microbatches"});
    item.Get("microbatches", &unit.microbatches);
    if (!item.Has("ranks")) return item.Fail("ranks is missing");
    item["ranks"].ForEach([&unit](const Reader& rank) { ReadRank(rank, &unit.ranks.emplace_back()); });
  });
  if (!reader.Has("placement")) return;
  reader["placement"].ForEach([stage](const Reader& item) { item.Read(&stage->placement.emplace_back().bounds); });
}

void ReadPlan(const Reader& reader, Plan* plan) {
  reader.Keys({"schema_version", "strategy", "epoch", "global_batch", "seq_len", "dtype", "schedule", "pipelines", "unused",
               "predicted"});
  int64_t version = 1, epoch = 0;
  std::string dtype(DTypeName(plan->dtype)), schedule = "layered";
  reader.Get("schema_version", &version);
  if (version < 1 || version > kPlanSchemaVersion) reader.Fail(absl::StrCat("schema_version ", version, " is not known, this build reads 1 and 2"));
  reader.Get("strategy", &plan->strategy);
  reader.Get("epoch", &epoch);
  plan->epoch = Epoch(epoch);
  reader.Get("global_batch", &plan->global_batch);
  reader.Get("seq_len", &plan->seq_len);
  reader.Get("dtype", &dtype);
  if (const auto parsed = ParseDType(dtype); parsed.ok()) {
    plan->dtype = *parsed;
  } else {
    reader["dtype"].Fail(std::string(parsed.status().message()));
  }
  reader.Get("schedule", &schedule);
  if (schedule != "layered") reader["schedule"].Fail(absl::StrCat("'", schedule, "' is not known; use layered"));
  if (!reader.Has("pipelines")) return reader.Fail("pipelines is missing");
  reader["pipelines"].ForEach([plan](const Reader& item) {
    PipelinePlan& pipeline = plan->pipelines.emplace_back();
    item.Keys({"stages"});
    if (!item.Has("stages")) return item.Fail("stages is missing");
    item["stages"].ForEach([&pipeline](const Reader& stage) { ReadStage(stage, &pipeline.stages.emplace_back()); });
  });
  if (reader.Has("unused")) {
    reader["unused"].ForEach([plan](const Reader& item) {
      item.Keys({"device", "because"});
      std::string device, because;
      item.Get("device", &device);
      item.Get("because", &because);
      plan->unused.push_back({DeviceId(device), because});
    });
  }
  if (!reader.Has("predicted")) return;
  const Reader predicted = reader["predicted"];
  predicted.Keys({"step_seconds", "tokens_per_second", "binding_constraint"});
  predicted.Get("step_seconds", &plan->predicted.step_seconds);
  predicted.Get("tokens_per_second", &plan->predicted.tokens_per_second);
  predicted.Get("binding_constraint", &plan->predicted.binding_constraint);
}

}  // namespace

std::string ToJson(const Plan& plan) {
  Json pipelines = Json::array(), unused = Json::array();
  for (const PipelinePlan& pipeline : plan.pipelines) {
    Json stages = Json::array();
    for (const StagePlan& stage : pipeline.stages) stages.push_back(StageToJson(stage));
    pipelines.push_back({{"stages", std::move(stages)}});
  }
  for (const UnusedDevice& device : plan.unused)
    unused.push_back({{"device", device.device.value()}, {"because", device.because}});
  const Json json = {{"schema_version", plan.schema_version},
                     {"strategy", plan.strategy},
                     {"epoch", plan.epoch.value()},
                     {"global_batch", plan.global_batch},
                     {"seq_len", plan.seq_len},
                     {"dtype", std::string(DTypeName(plan.dtype))},
                     {"schedule", "layered"},
                     {"pipelines", std::move(pipelines)},
                     {"unused", std::move(unused)},
                     {"predicted",
                      {{"step_seconds", plan.predicted.step_seconds},
                       {"tokens_per_second", plan.predicted.tokens_per_second},
                       {"binding_constraint", plan.predicted.binding_constraint}}}};
  return json.dump();
}

absl::StatusOr<Plan> PlanFromJson(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return absl::InvalidArgumentError("plan: not JSON");
  Plan plan;
  absl::Status status;
  ReadPlan(Reader(json, "plan", &status), &plan);
  MOTLEY_RETURN_IF_ERROR(status);
  return plan;
}

}  // namespace motley::planner
