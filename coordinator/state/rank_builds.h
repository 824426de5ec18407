// Which nodes train together while a cluster is upgraded node by node: ranks of two builds cannot (common/session/rank_build.h),
// so those of one build train and the others wait. Pure functions of the state.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "coordinator/state/cluster.h"
#include "coordinator/state/flapping.h"

namespace motley::coordinator {

// The build of most nodes that may be used; of several with as many the one of nodes that have ranks, then the one that trains
// now (ClusterState::rank_build), else the last by name. While nodes are here on which the job has run, others do not count: a
// job that trains is not moved for newcomers. `flapping` nodes do not count either. Without any node that counts: the one that
// trains now.
std::optional<std::string> BuildOfMost(const ClusterState& state, const std::set<NodeName>& flapping);

// Whether the node waits, since its ranks are of another build than the one that trains.
HoldDecision DecideHoldOfBuild(const ClusterState& state, const NodeRecord& node);

}  // namespace motley::coordinator
