// What a node's data address alone says of whether the others can reach it.
#pragma once

#include <string>

#include "coordinator/state/cluster.h"

namespace motley::coordinator {

// A loopback address is right as long as all workers are on one machine, and so is one that several of them tell. Why it is wrong
// for this node, and what helps; empty: as far as one can see from here, it is not.
std::string WhyDataAddressIsWrong(const ClusterState& state, const NodeRecord& node);

}  // namespace motley::coordinator
