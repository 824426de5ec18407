// What an examination says of the cluster, in rows for people: what is well, what is not, and what to do. Pure.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "common/session/files.h"
#include "coordinator/state/cluster.h"
#include "coordinator/state/examination.h"
#include "coordinator/state/finding.h"

namespace motley::coordinator {

// Of an examination that is done.
std::vector<Finding> Judge(absl::Duration now, const ClusterState& state, const Examination& examination);

// Its parts, in that order: judge_nodes.cc (both), judge_links.cc (both), judge_paths.cc.
std::vector<Finding> JudgeNodes(absl::Duration now, const ClusterState& state);
std::vector<Finding> JudgeClocks(const ClusterState& state);
std::vector<Finding> JudgePorts(const ClusterState& state, const Examination& examination);
std::vector<Finding> JudgeLinks(const Examination& examination);
std::vector<Finding> JudgePaths(const Examination& examination);

// Of what the nodes say of their own disks; null: nothing. judge_disks.cc
std::vector<Finding> JudgeDisks(const ClusterState& state, const std::map<NodeName, std::optional<HoldingsReport>>& answers);

}  // namespace motley::coordinator
