#include "planner/answers/more_cards.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace motley::planner {
namespace {

// "n1/gpu2" where n1 has gpu0 and gpu1: the name that the file's next card has.
std::vector<ClusterDevice> NewCards(const Cluster& cluster, int node, int kind, int count) {
  std::set<std::string> taken;
  for (const int d : cluster.nodes[node].devices) taken.insert(cluster.devices[d].id.value());
  std::vector<ClusterDevice> cards;
  for (size_t number = taken.size(); cards.size() < static_cast<size_t>(count); ++number) {
    const std::string name = absl::StrCat(cluster.nodes[node].name.value(), "/gpu", number);
    if (!taken.contains(name)) cards.push_back({DeviceId(name), kind, node});
  }
  return cards;
}

}  // namespace

Cluster WithMoreCards(const Cluster& cluster, int kind, int count, int* node) {
  const auto first = std::find_if(cluster.devices.begin(), cluster.devices.end(),
                                  [kind](const ClusterDevice& device) { return device.kind == kind; });
  const int where = first == cluster.devices.end() ? 0 : first->node;
  if (node != nullptr) *node = where;
  int last = cluster.nodes[where].devices.back();
  for (const int d : cluster.nodes[where].devices) {
    if (cluster.devices[d].kind == kind) last = d;
  }
  Cluster larger = cluster;
  if (const std::optional<CardLinks> links = std::exchange(larger.nodes[where].beside_another, std::nullopt); links) {
    SetCardLinks(*links, &larger.nodes[where]);
  }
  std::vector<ClusterDevice> cards = NewCards(cluster, where, kind, count);
  larger.devices.insert(larger.devices.begin() + last + 1, cards.begin(), cards.end());
  for (ClusterNode& own : larger.nodes) {
    own.devices.clear();
    own.pcie_roots.clear();  // the new cards' slots are not known; without roots every device has its own link
    for (DevicePair& pair : own.slow_pairs) {
      pair.a += pair.a > last ? count : 0;
      pair.b += pair.b > last ? count : 0;
    }
  }
  for (size_t d = 0; d < larger.devices.size(); ++d) larger.nodes[larger.devices[d].node].devices.push_back(static_cast<int>(d));
  return larger;
}

}  // namespace motley::planner
