#include "planner/strategies/baton/baton_lineup.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/groups/megatron_layout.h"

namespace motley::planner {
namespace {

constexpr size_t kMostCombinations = 64;
constexpr size_t kSmallCluster = 16;  // devices; units across nodes are tried up to here

using Units = std::vector<std::vector<int>>;

// One node's devices in the order given, and which class of node it is.
struct NodePart {
  std::vector<int> devices;
  size_t node_class = 0;
  bool mixed = false;  // of several kinds
};

struct NodeParts {
  std::vector<NodePart> parts;
  std::vector<size_t> class_sizes;  // devices of a node of each class
};

NodeParts SplitByNode(const Setting& setting, const std::vector<int>& order) {
  NodeParts result;
  std::map<std::vector<int>, size_t> classes;  // by kinds
  for (size_t begin = 0; begin < order.size();) {
    const int node = setting.cluster.devices[order[begin]].node;
    NodePart part;
    std::vector<int> kinds;
    for (; begin < order.size() && setting.cluster.devices[order[begin]].node == node; ++begin) {
      part.devices.push_back(order[begin]);
      kinds.push_back(setting.KindOf(order[begin]));
    }
    std::sort(kinds.begin(), kinds.end());
    part.mixed = kinds.front() != kinds.back();
    part.node_class = classes.try_emplace(kinds, classes.size()).first->second;
    if (part.node_class == result.class_sizes.size()) result.class_sizes.push_back(kinds.size());
    result.parts.push_back(std::move(part));
  }
  return result;
}

// Powers of two and the whole node.
std::vector<size_t> Degrees(size_t node_size, size_t largest) {
  std::vector<size_t> degrees;
  for (size_t t = 1; t <= std::min(node_size, largest); t *= 2) degrees.push_back(t);
  if (node_size <= largest && degrees.back() != node_size) degrees.push_back(node_size);
  return degrees;
}

void SortByKind(const Setting& setting, std::vector<int>* unit) {
  std::sort(unit->begin(), unit->end(),
            [&](int a, int b) { return std::pair(setting.KindOf(a), a) < std::pair(setting.KindOf(b), b); });
}

// Side by side: devices 0..t-1, t..2t-1. Spread: unit j of n has devices j, j + n, j + 2n: some of each kind, as those of a kind
// are adjacent.
void CutNode(const Setting& setting, const NodePart& node, size_t t, bool spread, Units* units) {
  std::vector<int> devices = node.devices;
  if (spread) SortByKind(setting, &devices);
  const size_t n = (devices.size() + t - 1) / t;
  Units own(n);
  for (size_t i = 0; i < devices.size(); ++i) own[spread ? i % n : i / t].push_back(devices[i]);
  for (std::vector<int>& unit : own) {
    SortByKind(setting, &unit);
    units->push_back(std::move(unit));
  }
}

// Every choice of a degree for each class while they are few; else the same degree for all, limited by the node.
std::vector<std::vector<size_t>> DegreeChoices(const std::vector<size_t>& class_sizes, size_t largest, bool one_degree) {
  size_t combinations = 1, most = 1;
  for (const size_t size : class_sizes) {
    combinations = std::min(kMostCombinations + 1, combinations * Degrees(size, largest).size());
    most = std::max(most, size);
  }
  std::vector<std::vector<size_t>> choices;
  if (one_degree || combinations > kMostCombinations) {
    for (const size_t t : Degrees(most, largest)) {
      std::vector<size_t> choice;
      for (const size_t size : class_sizes) choice.push_back(std::min(t, size));
      choices.push_back(std::move(choice));
    }
    return choices;
  }
  choices.push_back({});
  for (const size_t size : class_sizes) {
    std::vector<std::vector<size_t>> longer;
    for (const std::vector<size_t>& choice : choices) {
      for (const size_t t : Degrees(size, largest)) {
        longer.push_back(choice);
        longer.back().push_back(t);
      }
    }
    choices = std::move(longer);
  }
  return choices;
}

// Units across nodes; empty where the cluster is too large for them.
std::vector<Units> AcrossNodes(const Setting& setting, const NodeParts& nodes, size_t num_devices, size_t largest) {
  std::vector<Units> result;
  if (num_devices > kSmallCluster || nodes.parts.size() < 2) return result;
  Units one(1), rows;
  for (const NodePart& node : nodes.parts) {
    one[0].insert(one[0].end(), node.devices.begin(), node.devices.end());
    for (size_t i = 0; i < node.devices.size(); ++i) {
      if (i == rows.size()) rows.emplace_back();
      rows[i].push_back(node.devices[i]);
    }
  }
  if (num_devices <= largest) result.push_back(std::move(one));
  if (nodes.parts.size() <= largest) result.push_back(std::move(rows));
  for (Units& units : result) {
    for (std::vector<int>& unit : units) SortByKind(setting, &unit);
  }
  return result;
}

std::vector<UnusedDevice> NotIn(const Setting& setting, const std::vector<int>& order) {
  std::vector<bool> used(static_cast<size_t>(setting.num_devices()), false);
  for (const int d : order) used[d] = true;
  std::vector<UnusedDevice> unused;
  for (int d = 0; d < setting.num_devices(); ++d) {
    if (used[d]) continue;
    const std::string& kind = setting.cluster.kinds[setting.KindOf(d)].name;
    unused.push_back({setting.cluster.devices[d].id, absl::StrCat("the pipeline is faster without a ", kind)});
  }
  return unused;
}

}  // namespace

std::vector<BatonLineUp> MakeLineUps(const Setting& setting, const std::vector<int>& kinds_by_speed, int64_t largest,
                                     const BatonLimits& limits) {
  const size_t most = static_cast<size_t>(std::max<int64_t>(1, largest));
  std::vector<BatonLineUp> result;
  for (const std::vector<int>& order : DeviceOrders(setting, kinds_by_speed, !limits.cluster_order)) {
    const NodeParts nodes = SplitByNode(setting, order);
    const bool any_mixed = std::any_of(nodes.parts.begin(), nodes.parts.end(), [](const NodePart& n) { return n.mixed; });
    std::vector<Units> cuts = AcrossNodes(setting, nodes, order.size(), most);
    for (const std::vector<size_t>& degrees : DegreeChoices(nodes.class_sizes, most, limits.one_degree)) {
      for (const bool spread : {false, true}) {
        if (spread && !any_mixed) continue;
        Units units;
        for (const NodePart& node : nodes.parts) CutNode(setting, node, degrees[node.node_class], spread && node.mixed, &units);
        cuts.push_back(std::move(units));
      }
    }
    for (Units& units : cuts) {
      BatonLineUp line_up{std::move(units), NotIn(setting, order)};
      if (std::find(result.begin(), result.end(), line_up) == result.end()) result.push_back(std::move(line_up));
    }
  }
  return result;
}

}  // namespace motley::planner
