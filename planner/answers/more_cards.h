// The cluster with more cards of a kind, as its file would be with a larger count: for what one more card is worth, and how many
// more it takes.
#pragma once

#include "planner/cluster/cluster.h"

namespace motley::planner {

// On the first node that has the kind, behind the last card of it there. `node`: its place in the cluster; may be nullptr.
Cluster WithMoreCards(const Cluster& cluster, int kind, int count, int* node = nullptr);

}  // namespace motley::planner
