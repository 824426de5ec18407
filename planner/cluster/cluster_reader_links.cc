// What a cluster file says of links between nodes and regions.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "planner/cluster/cluster_reader.h"
#include "planner/cluster/cluster_units.h"

namespace motley::planner {
namespace {

constexpr size_t kMostNodesInMatrix = 2048, kMostDevicesInMatrix = 1024;  // matrices are dense
constexpr std::initializer_list<Unit> kLinkUnits = {{"gbit_per_second", 1e9 / 8}, {"gb_per_second", 1e9}};

}  // namespace

std::vector<std::string> ClusterReader::NodeNames() const {
  std::vector<std::string> names;
  for (const ClusterNode& node : cluster_.nodes) names.push_back(node.name.value());
  return names;
}

std::optional<std::pair<int, int>> ClusterReader::TwoOf(ClusterTable& table, const char* key,
                                                        const std::vector<std::string>& names) {
  const std::optional<std::vector<int>> two = table.Chosen(key, names);
  if (two && two->size() == 2 && (*two)[0] != (*two)[1]) return std::pair((*two)[0], (*two)[1]);
  if (two) table.Problem(key, absl::StrCat("must name two different ones, as in ", key, " = [\"a\", \"b\"]"));
  return std::nullopt;
}

void ClusterReader::SetLink(ClusterTable& table, size_t size, int a, int b, std::vector<std::vector<double>>* rates,
                            std::vector<std::vector<double>>* latencies) {
  const std::optional<double> rate = table.Quantity(kLinkUnits, kLeastRate, kMostNicRate);
  const std::optional<double> latency = table.Quantity({{"latency_us", kMicro}}, 0, kMostLatencySeconds);
  table.Finish();
  if (!rate && !latency)
    return table.Problem("gbit_per_second", "is missing; give gbit_per_second or gb_per_second, latency_us, or both");
  if (size > kMostNodesInMatrix)
    return table.Problem("gbit_per_second", absl::StrCat("links of their own are for at most ", kMostNodesInMatrix, " nodes"));
  const auto set = [&](const std::optional<double>& value, std::vector<std::vector<double>>* matrix) {
    if (!value) return;
    if (matrix->empty()) matrix->assign(size, std::vector<double>(size, 0));
    double &there = (*matrix)[a][b], &back = (*matrix)[b][a];
    if (there != 0 && there != *value) table.Problem("gbit_per_second", "this link was given before with another number");
    there = back = *value;
  };
  set(rate, rates);
  set(latency, latencies);
}

void ClusterReader::ReadLink(const toml::table& toml) {
  ClusterTable table(toml, "link", &problems_);
  const auto two = TwoOf(table, "nodes", NodeNames());
  if (two)
    SetLink(table, cluster_.nodes.size(), two->first, two->second, &cluster_.node_bytes_per_second,
            &cluster_.node_latency_seconds);
}

// Two devices of a node.
void ClusterReader::ReadDeviceLink(const toml::table& toml) {
  ClusterTable table(toml, "device_link", &problems_);
  std::vector<std::string> names;
  for (const ClusterDevice& device : cluster_.devices) names.push_back(device.id.value());
  const auto two = TwoOf(table, "devices", names);
  const std::optional<double> rate = table.Quantity(kLinkUnits, kLeastRate, kMostDeviceLinkRate);
  const std::optional<double> latency = table.Quantity({{"latency_us", kMicro}}, 0, kMostLatencySeconds);
  table.Finish();
  if (!rate) return table.Problem("gb_per_second", "is missing; give gb_per_second or gbit_per_second");
  if (!two) return;
  const auto [a, b] = std::minmax(two->first, two->second);
  if (cluster_.devices[a].node != cluster_.devices[b].node) {
    return table.Problem("devices", "are of two nodes, whose links are [[link]]'s");
  }
  ClusterNode& node = cluster_.nodes[cluster_.devices[a].node];
  if (node.devices.size() > kMostDevicesInMatrix) {
    return table.Problem("devices",
                         absl::StrCat("links of their own are for nodes of at most ", kMostDevicesInMatrix, " devices"));
  }
  const DevicePair pair{a, b, *rate, latency.value_or(node.device_link_latency_seconds)};
  const auto at =
      std::lower_bound(node.slow_pairs.begin(), node.slow_pairs.end(), pair,
                       [](const DevicePair& x, const DevicePair& y) { return std::pair(x.a, x.b) < std::pair(y.a, y.b); });
  if (at != node.slow_pairs.end() && at->a == a && at->b == b) return table.Problem("devices", "this link was given before");
  node.slow_pairs.insert(at, pair);
}

void ClusterReader::ReadRegionLink(const toml::table& toml) {
  ClusterTable table(toml, "region_link", &problems_);
  const auto two = TwoOf(table, "regions", cluster_.regions);
  if (two)
    SetLink(table, cluster_.regions.size(), two->first, two->second, &cluster_.region_bytes_per_second,
            &cluster_.region_latency_seconds);
}

void ClusterReader::FillMatrix(ClusterTable& table, const Unit& unit, double most, const std::vector<int>& nodes,
                               std::vector<std::vector<double>>* into) {
  const std::vector<std::string> names = NodeNames();
  const std::vector<std::vector<double>> matrix = table.SquareMatrix(unit, nodes.size(), most);
  if (matrix.empty()) return;
  if (into->empty()) into->assign(names.size(), std::vector<double>(names.size(), 0));
  for (size_t a = 0; a < nodes.size(); ++a) {
    for (size_t b = 0; b < nodes.size(); ++b) {
      const std::string &from = names[nodes[a]], &to = names[nodes[b]];
      if (matrix[a][b] != matrix[b][a]) {
        return table.Problem(
            unit.key, absl::StrCat("is not symmetric: ", from, " to ", to, " is ", matrix[a][b] / unit.factor, ", back it is ",
                                   matrix[b][a] / unit.factor, "; give the slower of the two both ways"));
      }
      if (a != b) (*into)[nodes[a]][nodes[b]] = matrix[a][b];
    }
  }
}

void ClusterReader::ReadMatrix(const toml::table& toml) {
  ClusterTable table(toml, "matrix", &problems_);
  if (cluster_.nodes.size() > kMostNodesInMatrix) {
    return table.Problem("nodes", absl::StrCat("a matrix is for at most ", kMostNodesInMatrix, " nodes"));
  }
  std::vector<int> nodes(cluster_.nodes.size());
  for (size_t n = 0; n < nodes.size(); ++n) nodes[n] = static_cast<int>(n);
  if (table.Has("nodes")) nodes = table.Chosen("nodes", NodeNames()).value_or(std::vector<int>());
  if (nodes.empty()) return;
  for (const Unit& unit : kLinkUnits) FillMatrix(table, unit, kMostNicRate, nodes, &cluster_.node_bytes_per_second);
  FillMatrix(table, {"latency_us", kMicro}, kMostLatencySeconds, nodes, &cluster_.node_latency_seconds);
  table.Finish();
}

// What was measured among all devices together.
void ClusterReader::ReadCollectives(ClusterTable& root) {
  constexpr int64_t kMostBytes = int64_t{1} << 50;

  CollectiveProfile& collectives = cluster_.collectives;
  for (const toml::table* toml : root.Tables("collective")) {
    ClusterTable table(*toml, "collective", &problems_);

    const auto bytes = table.Integer("bytes", 1, kMostBytes);
    const auto share = table.Quantity({{"largest_share", 1}}, 1e-6, 1);
    const auto gather = table.Quantity({{"all_gather_us", kMicro}}, 1e-9, 1e6),
               reduce = table.Quantity({{"reduce_scatter_us", kMicro}}, 1e-9, 1e6);
    table.Finish();
    for (const auto& [key, there] :
         {std::pair("bytes", bytes.has_value()), std::pair("largest_share", share.has_value()),
          std::pair("all_gather_us", gather.has_value()), std::pair("reduce_scatter_us", reduce.has_value())}) {
      if (!there && !table.Has(key))
        table.Problem(key, "is missing; a measured collective has its size, its largest share and both times");
    }
    if (bytes && share && gather && reduce) collectives.points.push_back({*bytes, *share, *gather, *reduce});
  }
  collectives.barrier_seconds = root.Quantity({{"scalars_us", kMicro}}, 0, 1e6).value_or(0);
  for (const ClusterDevice& device : cluster_.devices) {
    if (!collectives.points.empty()) collectives.devices.push_back(device.id);
  }
}

// Two nodes need a NIC each, or a rate of their own.
void ClusterReader::CheckReachable() {
  const auto& pairs = cluster_.node_bytes_per_second;
  int said = 0;  // the line of the newest problem: nodes of one section have the same
  for (size_t a = 0; a < cluster_.nodes.size(); ++a) {
    if (cluster_.nodes[a].nic_bytes_per_second > 0) continue;
    if (node_lines_[a] == said) continue;
    for (size_t b = 0; b < cluster_.nodes.size(); ++b) {
      if (a == b || (!pairs.empty() && pairs[a][b] > 0)) continue;
      problems_.Add(
          node_lines_[a], "node.nic_gbit_per_second",
          absl::StrCat(
              "no link between nodes '", cluster_.nodes[a].name.value(), "' and '", cluster_.nodes[b].name.value(),
              "'; give nic_gbit_per_second (the node's, or card_nic_gbit_per_second for each card) here or in [defaults], or a "
              "[[link]] between the two"));
      said = node_lines_[a];
      break;
    }
  }
}

}  // namespace motley::planner
