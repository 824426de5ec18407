#include "planner/groups/alike_devices.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>

namespace motley::planner {

std::vector<int> FirstAlike(const Setting& setting) {
  std::map<std::tuple<int, int, int64_t>, int> first;  // by node, kind and memory
  std::vector<int> alike;
  for (int d = 0; d < setting.num_devices(); ++d) {
    const int n = setting.cluster.devices[d].node;
    const ClusterNode& node = setting.cluster.nodes[n];
    const bool plain = node.pcie_roots.empty() && node.slow_pairs.empty() && setting.pinned_stage[d] < 0;
    alike.push_back(plain ? first.try_emplace({n, setting.KindOf(d), setting.UsableBytes(d)}, d).first->second : d);
  }
  return alike;
}

std::vector<std::vector<int>> LookOf(const std::vector<int>& first_alike, std::vector<std::vector<int>> groups) {
  for (std::vector<int>& group : groups) {
    for (int& device : group) device = first_alike[static_cast<size_t>(device)];
    std::sort(group.begin(), group.end());
  }
  return groups;
}

}  // namespace motley::planner
