// Nodes that are alike: the same devices, links, host memory and price, and no pair of nodes whose rate is known on its own.
#pragma once

#include <vector>

#include "planner/cluster/cluster.h"

namespace motley::planner {

bool AreAlike(const Cluster& cluster, const ClusterNode& a, const ClusterNode& b);

// Every node, with those that are alike; ascending, classes by their first node.
std::vector<std::vector<int>> ClassesOfAlikeNodes(const Cluster& cluster);

}  // namespace motley::planner
