#include "planner/strategies/auto/auto_parts.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "planner/cluster/alike_nodes.h"
#include "planner/plan/each_rank.h"
#include "planner/pricing/evaluate.h"

namespace motley::planner {
namespace {

// Nodes of which the first few are taken; `whole`: all or none.
struct Choice {
  std::vector<int> nodes;
  size_t step = 1;  // 1, or all of them
};

std::vector<Choice> ChoicesOf(const Setting& setting) {
  const auto is_pinned = [&](int device) { return setting.pinned_stage[device] >= 0; };
  const bool small = setting.cluster.nodes.size() <= kMostNodes;
  std::vector<Choice> choices;
  for (const std::vector<int>& alike : ClassesOfAlikeNodes(setting.cluster)) {
    const bool pinned = std::any_of(alike.begin(), alike.end(), [&](int n) {
      const std::vector<int>& devices = setting.cluster.nodes[n].devices;
      return std::any_of(devices.begin(), devices.end(), is_pinned);
    });
    if (!pinned) {
      choices.push_back({alike, small ? 1 : alike.size()});
    } else {
      for (const int n : alike) choices.push_back({{n}, 1});  // not the first of them, but the pinned one
    }
  }
  return choices;
}

bool HasAllPinned(const Setting& setting, const ClusterPart& part) {
  for (int d = 0; d < setting.num_devices(); ++d) {
    if (setting.pinned_stage[d] >= 0 && !std::binary_search(part.devices.begin(), part.devices.end(), d)) return false;
  }
  return true;
}

}  // namespace

ClusterPart PartOf(const Setting& setting, const std::set<int>& nodes) {
  ClusterPart part;
  std::vector<std::string> names;
  for (const int n : nodes) {
    const ClusterNode& node = setting.cluster.nodes[n];
    part.devices.insert(part.devices.end(), node.devices.begin(), node.devices.end());
    names.push_back(node.name.value());
  }
  std::sort(part.devices.begin(), part.devices.end());
  part.nodes = absl::StrJoin(names, ", ");
  return part;
}

std::set<int> NodesOf(const Setting& setting, const Plan& plan) {
  std::set<int> nodes;
  ForEachRank(plan, [&](const RankPlan& rank) { nodes.insert(setting.cluster.devices[setting.FindDevice(rank.device)].node); });
  return nodes;
}

std::vector<ClusterPart> PartsOf(const Setting& setting) {
  const std::vector<Choice> choices = ChoicesOf(setting);
  if (choices.size() > kMostNodes) return {};
  std::vector<ClusterPart> parts;
  std::vector<size_t> taken(choices.size(), 0);
  for (size_t c = 0; c < choices.size();) {  // counts like a number whose digits are `taken`
    taken[c] += choices[c].step;
    if (taken[c] > choices[c].nodes.size()) {
      taken[c++] = 0;
      continue;
    }
    c = 0;
    std::set<int> nodes;
    for (size_t i = 0; i < choices.size(); ++i) {
      nodes.insert(choices[i].nodes.begin(), choices[i].nodes.begin() + static_cast<std::ptrdiff_t>(taken[i]));
    }
    if (nodes.size() == setting.cluster.nodes.size()) continue;
    ClusterPart part = PartOf(setting, nodes);
    if (!HasAllPinned(setting, part)) continue;
    part.bound_seconds = FindLowerBound(setting.Part(part.devices)).seconds;
    parts.push_back(std::move(part));
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const ClusterPart& a, const ClusterPart& b) { return a.bound_seconds < b.bound_seconds; });
  return parts;
}

}  // namespace motley::planner
