// Times hand-overs between every two nodes and inside each of them, on the ranks and links that will train (docs/profiles.md).
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/session/profile.h"
#include "worker/engine/transport/communicator.h"

namespace motley::engine {

using RankPair = std::pair<int, int>;

// The pairs to measure, in turns: the first two ranks of each node, and of every two nodes the first rank of each. Few pairs have
// a turn each. Where they are many, a turn has all that share no node, so that turns grow with the nodes and not with their
// square.
std::vector<std::vector<RankPair>> LinkTurns(const std::vector<DeviceId>& devices);

// The ranks that `rank` is paired with: CommunicatorOptions must name them as peers both ways.
std::set<int> LinkPeers(const std::vector<DeviceId>& devices, int rank);

// Every rank calls it together, `devices` by rank; all get the same links, both ways of each pair. Errors: the communicator's.
absl::StatusOr<std::vector<MeasuredLink>> ProfileLinks(const std::vector<DeviceId>& devices, Communicator& communicator);

}  // namespace motley::engine
