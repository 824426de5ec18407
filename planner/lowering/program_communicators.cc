#include "planner/lowering/program_communicators.h"

#include <algorithm>
#include <optional>
#include <set>

#include "common/program/hand_over_peers.h"
#include "planner/costs/nccl_buffers.h"

namespace motley::planner {
namespace {

// None: the members cannot use NCCL together, or the rank is none of them.
std::optional<NcclSpread> SpreadOf(const Cluster& cluster, const std::vector<int>& devices, const std::vector<int32_t>& members,
                                   int32_t rank) {
  if (std::find(members.begin(), members.end(), rank) == members.end()) return std::nullopt;
  const auto device_of = [&](int32_t r) -> const ClusterDevice& { return cluster.devices[devices[r]]; };
  const auto path_of = [&](int32_t r) { return cluster.kinds[device_of(r).kind].nccl; };
  NcclSpread spread;
  std::set<int> nodes;
  for (const int32_t member : members) {
    if (path_of(member) == NcclPath::kNone) return std::nullopt;
    nodes.insert(device_of(member).node);
    if (member == rank || device_of(member).node != device_of(rank).node) continue;
    ++spread.local;
    spread.path = std::max(spread.path, std::min(path_of(member), path_of(rank)));
  }
  spread.nodes = static_cast<int64_t>(nodes.size());
  return spread;
}

}  // namespace

int64_t NcclBytes(const Cluster& cluster, const std::vector<int>& devices, const Program& training, const Program& evaluation) {
  const int32_t rank = training.rank;
  int64_t bytes = 0;
  for (const std::vector<int32_t>& group : training.groups) {
    if (const auto spread = SpreadOf(cluster, devices, group, rank)) bytes += NcclGroupBytes(*spread);
  }
  const HandOverPeers peers = HandOverPeersOf(training, evaluation);
  for (const bool receives : {false, true}) {
    for (const int peer : receives ? peers.receives_from : peers.sends_to) {
      if (const auto spread = SpreadOf(cluster, devices, {rank, peer}, rank)) bytes += NcclPairBytes(*spread, receives);
    }
  }
  return bytes > 0 ? bytes + kNcclKernelBytes : 0;
}

}  // namespace motley::planner
