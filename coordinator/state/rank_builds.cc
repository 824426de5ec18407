#include "coordinator/state/rank_builds.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"

namespace motley::coordinator {
namespace {

std::string Named(const std::string& build) { return build.empty() ? "an unknown build" : absl::StrCat("build ", Echo(build)); }

}  // namespace

std::string BuildOfMost(const ClusterState& state) {
  std::map<std::string, int> nodes;
  for (const auto& [name, node] : state.nodes) {
    if (node.connected && !node.drained && !node.leaves_at) ++nodes[node.description.rank_build];
  }
  std::string chosen = state.rank_build;
  int most = nodes.contains(chosen) ? nodes.at(chosen) : 0;
  const bool present = most > 0;
  for (const auto& [build, count] : nodes) {
    if (count > most || (count == most && !present)) chosen = build, most = count;
  }
  return chosen;
}

HoldDecision DecideHoldOfBuild(const ClusterState& state, const NodeRecord& node) {
  const std::string& build = node.description.rank_build;
  if (build == state.rank_build) return {};
  return {true, absl::StrCat("its ranks are of ", Named(build), ", those that train of ", Named(state.rank_build),
                             ": it waits until most nodes have its build (docs/upgrading.md)")};
}

}  // namespace motley::coordinator
