// Times hand-overs between every two nodes and inside each of them, on the ranks and links that will train
// (docs/inside/profiles.md).
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/session/profile.h"
#include "worker/engine/device/device_backend.h"
#include "worker/engine/transport/communicator.h"

namespace motley::engine {

using RankPair = std::pair<int, int>;

// Between whom links are measured. The same on all ranks.
struct LinkPlan {
  std::vector<DeviceId> devices;  // by rank
  std::vector<RankPair> inside;   // of nodes; empty: of each node the first two ranks (RepresentativePairs)
};

// The pairs to measure, in turns: those inside the nodes, and of every two nodes the first rank of each. Few pairs have a turn
// each. Where they are many, a turn has all that share no node, so that turns grow with the nodes and not with their square.
std::vector<std::vector<RankPair>> LinkTurns(const LinkPlan& plan);

// The ranks that `rank` is paired with: CommunicatorOptions must name them as peers both ways.
std::set<int> LinkPeers(const LinkPlan& plan, int rank);

// Every rank calls it together; all get the same links, both ways of each pair. Bytes lie where those of training do, and go by
// the transport that the communicator has for the pair. Errors: the communicator's.
absl::StatusOr<std::vector<MeasuredLink>> ProfileLinks(const LinkPlan& plan, DeviceBackend& backend, Communicator& communicator);

}  // namespace motley::engine
