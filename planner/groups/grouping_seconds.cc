#include "planner/groups/grouping_seconds.h"

#include <algorithm>
#include <cstddef>
#include <set>

namespace motley::planner {
namespace {

double NodesOf(const Setting& setting, const std::vector<int>& group) {
  std::set<int> nodes;
  for (const int device : group) nodes.insert(setting.cluster.devices[device].node);
  return static_cast<double>(nodes.size());
}

// One way, all samples.
double BorderSeconds(const Setting& setting, const std::vector<int>& from, const std::vector<int>& to) {
  const auto bytes = static_cast<double>(setting.costs.BoundaryBytes(static_cast<double>(setting.workload.global_batch)));
  return bytes / (setting.links.Rate(from[0], to[0]) * std::min(NodesOf(setting, from), NodesOf(setting, to)));
}

}  // namespace

double RoughSeconds(const Setting& setting, const std::vector<std::vector<int>>& groups) {
  size_t devices = 0;
  for (const std::vector<int>& group : groups) devices += group.size();
  const double batch = static_cast<double>(setting.workload.global_batch);
  const double samples = std::clamp<double>(batch / static_cast<double>(devices), 1, 8);
  std::vector<double> rates;
  double total = 0;
  for (const std::vector<int>& group : groups) {
    double rate = 0;
    for (const int device : group) {
      const int kind = setting.KindOf(device);
      rate += samples / (setting.costs.ForwardSeconds(kind, UnitKind::kLayer, samples) +
                         setting.costs.BackwardSeconds(kind, UnitKind::kLayer, samples));
    }
    rates.push_back(rate);
    total += rate;
  }
  const double layer_bytes = static_cast<double>(setting.costs.UnitElements(UnitKind::kLayer) * setting.costs.element_bytes());
  const auto layers = static_cast<double>(setting.workload.model.num_layers);
  double seconds = 0, border_before = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    const double own = layers * rates[g] / total;
    const double compute = own * batch / rates[g];
    const double gather = own * setting.links.SecondsAlone(setting.links.Ring(Collective::kAllGather, groups[g], layer_bytes));
    const double border = g + 1 < groups.size() ? BorderSeconds(setting, groups[g], groups[g + 1]) : 0;
    seconds = std::max({seconds, std::min(std::max(compute, 3 * gather), compute + 2 * gather), border_before + border});
    border_before = border;
  }
  return seconds;
}

}  // namespace motley::planner
