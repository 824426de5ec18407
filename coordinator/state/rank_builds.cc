#include "coordinator/state/rank_builds.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"

namespace motley::coordinator {
namespace {

std::string Named(const std::string& build) { return build.empty() ? "an unknown build" : absl::StrCat("build ", Echo(build)); }

bool MayCount(const NodeRecord& node) { return node.connected && !node.drained && !node.leaves_at; }

// Nodes that are here and on which the job has run.
std::set<NodeName> Proven(const ClusterState& state) {
  std::set<NodeName> proven;
  if (!state.run || !state.run->has_run) return proven;
  for (const DeviceId& device : state.run->took_part) {
    const auto node = state.nodes.find(NodeOf(device));
    if (node != state.nodes.end() && MayCount(node->second)) proven.insert(node->first);
  }
  return proven;
}

std::set<NodeName> WithRanks(const ClusterState& state) {
  std::set<NodeName> names;
  if (!state.run) return names;
  for (const RankRun& rank : state.run->ranks) {
    if (!rank.ended) names.insert(NodeOf(rank.device));
  }
  return names;
}

}  // namespace

std::optional<std::string> BuildOfMost(const ClusterState& state, const std::set<NodeName>& flapping) {
  const std::set<NodeName> proven = Proven(state), ranks = WithRanks(state);
  // By build: how many nodes, and whether it is to be preferred where others have as many.
  std::map<std::string, std::pair<int, int>> votes;
  for (const auto& [name, node] : state.nodes) {
    if (!MayCount(node) || flapping.contains(name) || (!proven.empty() && !proven.contains(name))) continue;
    auto& [nodes, preferred] = votes[node.description.rank_build];
    ++nodes;
    if (ranks.contains(name)) preferred = 2;
    if (node.description.rank_build == state.rank_build) preferred = std::max(preferred, 1);
  }
  const auto most = std::max_element(votes.begin(), votes.end(), [](const auto& a, const auto& b) {
    return std::tie(a.second, a.first) < std::tie(b.second, b.first);
  });
  return most == votes.end() ? state.rank_build : most->first;
}

HoldDecision DecideHoldOfBuild(const ClusterState& state, const NodeRecord& node) {
  const std::string& build = node.description.rank_build;
  if (!state.rank_build || build == *state.rank_build) return {};
  return {true, absl::StrCat("its ranks are of ", Named(build), ", those that train of ", Named(*state.rank_build),
                             ": it waits until most nodes have its build (docs/use/upgrading.md)")};
}

}  // namespace motley::coordinator
