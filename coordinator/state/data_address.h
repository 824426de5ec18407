// What a node's data address alone says of whether the others can reach it.
#pragma once

#include <string>

#include "coordinator/state/cluster.h"

namespace motley::coordinator {

// A loopback address is right as long as all workers are on one machine. Why it is wrong for this node, and what helps; empty: it
// is no loopback address, or nobody is elsewhere.
std::string WhyLoopbackIsWrong(const ClusterState& state, const NodeRecord& node);

}  // namespace motley::coordinator
