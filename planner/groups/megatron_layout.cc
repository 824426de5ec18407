#include "planner/groups/megatron_layout.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/model/model_slice.h"

namespace motley::planner {
namespace {

const ClusterDevice& DeviceAt(const Setting& setting, int device) { return setting.cluster.devices[device]; }

// Rank of each kind in a list, by kind; kinds that are not in it come last.
std::vector<size_t> Positions(const std::vector<int>& kinds, size_t num_kinds) {
  std::vector<size_t> position(num_kinds, kinds.size());
  for (size_t i = 0; i < kinds.size(); ++i) position[kinds[i]] = i;
  return position;
}

// Devices of these kinds: nodes by their best kind's position in `kinds`, inside a node by kind too.
std::vector<int> ByKinds(const Setting& setting, const std::vector<int>& kinds) {
  const std::vector<size_t> position = Positions(kinds, setting.cluster.kinds.size());
  struct Key {
    size_t node_position, node, position;
    int device;
    auto operator<=>(const Key&) const = default;
  };
  std::vector<Key> keys;
  for (size_t n = 0; n < setting.cluster.nodes.size(); ++n) {
    const std::vector<int>& devices = setting.cluster.nodes[n].devices;
    size_t best = kinds.size();
    for (const int d : devices) best = std::min(best, position[setting.KindOf(d)]);
    for (const int d : devices) {
      const size_t own = position[setting.KindOf(d)];
      if (own < kinds.size()) keys.push_back({best, n, own, d});
    }
  }
  std::sort(keys.begin(), keys.end());
  std::vector<int> order;
  for (const Key& key : keys) order.push_back(key.device);
  return order;
}

}  // namespace

std::vector<int> KindsBySpeed(const Setting& setting) {
  const Costs& costs = setting.costs;
  std::vector<std::pair<double, int>> order;
  for (int kind = 0; kind < costs.num_kinds(); ++kind) {
    order.emplace_back(costs.ForwardSeconds(kind, UnitKind::kLayer, 1) + costs.BackwardSeconds(kind, UnitKind::kLayer, 1), kind);
  }
  std::sort(order.begin(), order.end());
  std::vector<int> kinds;
  for (const auto& [seconds, kind] : order) kinds.push_back(kind);
  return kinds;
}

std::vector<std::vector<int>> DeviceOrders(const Setting& setting, const std::vector<int>& kinds_by_speed, bool others) {
  std::vector<int> all;
  for (int d = 0; d < setting.num_devices(); ++d) all.push_back(d);
  std::vector<std::vector<int>> orders = {all};
  if (!others) return orders;
  const auto add = [&](std::vector<int> order) {
    if (std::find(orders.begin(), orders.end(), order) == orders.end()) orders.push_back(std::move(order));
  };
  for (size_t kept = kinds_by_speed.size(); kept >= 1; --kept) {
    std::vector<int> kinds(kinds_by_speed.begin(), kinds_by_speed.begin() + static_cast<std::ptrdiff_t>(kept));
    add(ByKinds(setting, kinds));
    std::stable_sort(kinds.begin(), kinds.end(),
                     [&](int a, int b) { return setting.cluster.kinds[a].memory_bytes > setting.cluster.kinds[b].memory_bytes; });
    add(ByKinds(setting, kinds));
  }
  return orders;
}

MegatronGroups MakeGroups(const Setting& setting, const std::vector<int>& order, int tp) {
  MegatronGroups result;
  result.tp = tp;
  std::vector<bool> in_order(static_cast<size_t>(setting.num_devices()), false);
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin;
    while (end < order.size() && DeviceAt(setting, order[end]).node == DeviceAt(setting, order[begin]).node) ++end;
    for (; begin + static_cast<size_t>(tp) <= end; begin += static_cast<size_t>(tp)) {
      result.groups.emplace_back(order.begin() + static_cast<std::ptrdiff_t>(begin),
                                 order.begin() + static_cast<std::ptrdiff_t>(begin) + tp);
      for (const int d : result.groups.back()) in_order[d] = true;
    }
    for (; begin < end; ++begin) {
      const ClusterDevice& device = DeviceAt(setting, order[begin]);
      in_order[order[begin]] = true;
      result.unused.push_back({device.id, absl::StrCat("groups of ", tp, " inside ",
                                                       setting.cluster.nodes[device.node].name.value(), " leave it over")});
    }
  }
  for (int d = 0; d < setting.num_devices(); ++d) {
    if (in_order[d]) continue;
    const ClusterDevice& device = DeviceAt(setting, d);
    result.unused.push_back({device.id, absl::StrCat("equal shares for a ", setting.cluster.kinds[device.kind].name,
                                                     " would hold the faster cards back")});
  }
  return result;
}

std::vector<int> TensorParallelDegrees(const ModelShape& model, int64_t most) {
  std::vector<int> degrees;
  for (int64_t tp = 1; tp <= most; tp *= 2) {
    if (model.num_heads % tp == 0 && NumParts(model) % tp == 0 && model.intermediate_size % tp == 0) {
      degrees.push_back(static_cast<int>(tp));
    }
  }
  return degrees;
}

}  // namespace motley::planner
