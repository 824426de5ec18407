// Who measures the way to whom, and when: rounds in which every node takes part at most once, so that measurements do not disturb
// each other. Pure.
#pragma once

#include <utility>
#include <vector>

#include "common/base/ids.h"

namespace motley::coordinator {

using Way = std::pair<NodeName, NodeName>;  // from, to
using Round = std::vector<Way>;

// At most so many of the nodes, which are in order, that follow this one in the ring of all: with many nodes not always the same
// few.
std::vector<NodeName> Following(const std::vector<NodeName>& nodes, const NodeName& node, size_t most);

// Every ordered pair of the nodes once: 2 (n - 1) rounds for an even number of nodes, 2 n for an odd one (the circle method).
std::vector<Round> AllWays(const std::vector<NodeName>& nodes);
// From each node to the next and from the last to the first: 2 rounds for an even number of nodes, 3 for an odd one.
std::vector<Round> RingWays(const std::vector<NodeName>& nodes);

}  // namespace motley::coordinator
