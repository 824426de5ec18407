#include "coordinator/client/presets_command.h"

#include <sysexits.h>

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/model/parameters.h"
#include "coordinator/client/format.h"
#include "coordinator/client/json.h"
#include "coordinator/client/offline_flags.h"
#include "coordinator/client/table.h"
#include "planner/cluster/cluster_file.h"
#include "planner/costs/workload.h"

namespace motley::client {
namespace {

// "16 x V100-16GB, 8 x A10G".
std::string CardsText(const planner::Cluster& cluster) {
  std::vector<int> counts(cluster.kinds.size(), 0);
  for (const planner::ClusterDevice& device : cluster.devices) ++counts[device.kind];
  std::string text;
  for (size_t k = 0; k < counts.size(); ++k) absl::StrAppend(&text, k == 0 ? "" : ", ", counts[k], " x ", cluster.kinds[k].name);
  return text;
}

Exit ShowCluster(Context& context, const std::string& name) {
  const absl::StatusOr<planner::Cluster> cluster = planner::LoadCluster(name);
  if (!cluster.ok()) return FromPlanner(cluster.status());
  std::string toml;
  for (const planner::ClusterPreset& preset : planner::ClusterPresets()) {
    if (preset.name == name) toml = std::string(preset.toml);
  }
  if (toml.empty()) return {EX_NOINPUT, absl::StrCat(name, " is a file of yours, not a preset")};
  context.json ? PrintDocument(context.out, Json{{"name", name}, {"toml", toml}}) : void(context.out << toml);
  return {};
}

Exit ListClusters(Context& context) {
  Json list = Json::array();
  Table table({"CLUSTER", "NODES", "DEVICES", "CARDS", "WHAT"});
  for (const planner::ClusterPreset& preset : planner::ClusterPresets()) {
    const std::string name(preset.name), what(preset.what);
    const absl::StatusOr<planner::Cluster> cluster = planner::LoadCluster(name);
    if (!cluster.ok()) return FromPlanner(cluster.status());
    table.Add({name, absl::StrCat(cluster->nodes.size()), absl::StrCat(cluster->devices.size()), CardsText(*cluster), what});
    list.push_back({{"name", name},
                    {"what", what},
                    {"nodes", cluster->nodes.size()},
                    {"devices", cluster->devices.size()},
                    {"cards", CardsText(*cluster)},
                    {"price_per_hour", cluster->price_per_hour()},
                    {"notes", cluster->notes}});
  }
  context.json ? PrintDocument(context.out, Json{{"clusters", list}}) : table.Print(context.out, context.screen);
  return {};
}

Exit ShowModel(Context& context, const std::string& name) {
  const absl::StatusOr<planner::Workload> model = planner::LoadModel(name);
  if (!model.ok()) return FromPlanner(model.status());
  Warn(context.err, model->notes);
  PrintDocument(context.out, Json::parse(ToHfConfig(model->model)));
  return {};
}

Exit ListModels(Context& context) {
  Json list = Json::array();
  Table table({"MODEL", "PARAMETERS", "LAYERS", "HIDDEN", "HEADS", "POSITIONS", "VOCABULARY", "WHAT"});
  for (const planner::ModelPreset& preset : planner::ModelPresets()) {
    const ModelShape& m = preset.model;
    const std::string name(preset.name), what(preset.what);
    table.Add({name, absl::StrFormat("%.3g B", static_cast<double>(NumParameters(m)) / 1e9), absl::StrCat(m.num_layers),
               absl::StrCat(m.hidden_size), absl::StrCat(m.num_heads), absl::StrCat(m.max_positions), absl::StrCat(m.vocab_size),
               what});
    list.push_back({{"name", name},
                    {"what", what},
                    {"parameters", NumParameters(m)},
                    {"layers", m.num_layers},
                    {"hidden_size", m.hidden_size},
                    {"heads", m.num_heads},
                    {"kv_heads", m.num_kv_heads},
                    {"intermediate_size", m.intermediate_size},
                    {"positions", m.max_positions},
                    {"vocabulary", m.vocab_size},
                    {"causal", preset.causal},
                    {"profile_name", std::string(preset.profile_name)}});
  }
  context.json ? PrintDocument(context.out, Json{{"models", list}}) : table.Print(context.out, context.screen);
  return {};
}

}  // namespace

Action AddClusters(CLI::App& app) {
  auto name = std::make_shared<std::string>();
  app.add_option("NAME", *name, "print this preset's file, to begin your own with");
  app.footer("Example: motley clusters cephalo-a > mine.toml");
  return [name](Context& context) { return name->empty() ? ListClusters(context) : ShowCluster(context, *name); };
}

Action AddModels(CLI::App& app) {
  auto name = std::make_shared<std::string>();
  app.add_option("NAME", *name, "print this preset's config.json");
  app.footer("Example: motley models llama-7b > config.json");
  return [name](Context& context) { return name->empty() ? ListModels(context) : ShowModel(context, *name); };
}

}  // namespace motley::client
