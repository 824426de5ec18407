#include "planner/cluster/alike_nodes.h"

#include <algorithm>
#include <cstddef>
#include <tuple>

namespace motley::planner {

bool AreAlike(const Cluster& cluster, const ClusterNode& a, const ClusterNode& b) {
  if (!cluster.node_bytes_per_second.empty() || !cluster.node_latency_seconds.empty()) return false;
  if (a.devices.size() != b.devices.size()) return false;
  for (size_t i = 0; i < a.devices.size(); ++i) {
    if (cluster.devices[a.devices[i]].kind != cluster.devices[b.devices[i]].kind) return false;
  }
  // Roots and pairs name devices by their place in the cluster: nodes that have them are like no other.
  const bool plain = a.pcie_roots.empty() && b.pcie_roots.empty() && a.slow_pairs.empty() && b.slow_pairs.empty();
  const auto values = [](const ClusterNode& n) {
    return std::tuple(n.region, n.device_link_bytes_per_second, n.device_link_latency_seconds, n.nic_bytes_per_second,
                      n.nic_latency_seconds, n.host_memory_bytes, n.host_link_bytes_per_second, n.price_per_hour);
  };
  return plain && values(a) == values(b);
}

std::vector<std::vector<int>> ClassesOfAlikeNodes(const Cluster& cluster) {
  std::vector<std::vector<int>> classes;
  for (int n = 0; n < static_cast<int>(cluster.nodes.size()); ++n) {
    const auto same = std::find_if(classes.begin(), classes.end(), [&](const std::vector<int>& of) {
      return AreAlike(cluster, cluster.nodes[of.front()], cluster.nodes[n]);
    });
    if (same == classes.end()) {
      classes.push_back({n});
    } else {
      same->push_back(n);
    }
  }
  return classes;
}

}  // namespace motley::planner
