#include "planner/strategies/megatron/megatron_cut.h"

#include <algorithm>

namespace motley::planner {
namespace {

constexpr double kProbeBytes = 1e9;  // large enough to tell rate from latency

// One ring through rank i of every group, for all i at once.
TransferLine Rings(const Links& links, Collective collective, const std::vector<const std::vector<int>*>& groups) {
  size_t ranks = groups.front()->size();
  for (const std::vector<int>* group : groups) ranks = std::min(ranks, group->size());
  std::vector<Flow> flows;
  for (size_t i = 0; i < ranks; ++i) {
    std::vector<int> ring;
    for (const std::vector<int>* group : groups) ring.push_back((*group)[i]);
    flows.push_back(links.Ring(collective, ring, kProbeBytes));
  }
  return LineOf(links, Links::Together(flows), kProbeBytes);
}

// Activations go from a unit's first rank to that of the same replica in the next stage.
void AddBorders(const Links& links, const std::vector<std::vector<int>>& groups, int64_t stages, int64_t replicas,
                GroupCut* cut) {
  if (stages < 2) return;
  const auto first = [&](int64_t stage, int64_t replica) { return groups[stage * replicas + replica][0]; };
  std::vector<Flow> all;
  for (int64_t s = 0; s < stages; ++s) {
    const int64_t next = (s + 1) % stages;
    if (next == 0) cut->links_seconds_per_byte = LineOf(links, Links::Together(all), kProbeBytes).seconds_per_byte;
    std::vector<Flow> forth;
    for (int64_t r = 0; r < replicas; ++r) {
      forth.push_back(links.PointToPoint(first(s, r), first(next, r), kProbeBytes));
      all.push_back(links.PointToPoint(first(next, r), first(s, r), kProbeBytes));
    }
    const Flow border = Links::Together(forth);
    if (next != 0) cut->sends.push_back(LineOf(links, border, kProbeBytes));
    all.push_back(border);
  }
  cut->round_links_seconds_per_byte = LineOf(links, Links::Together(all), kProbeBytes).seconds_per_byte;
}

}  // namespace

GroupCut CutGroups(const Setting& setting, const std::vector<std::vector<int>>& groups, int64_t stages, int64_t replicas) {
  const Links& links = setting.links;
  GroupCut cut;
  cut.device_of_kind.assign(setting.cluster.kinds.size(), -1);
  const auto group = [&](int64_t stage, int64_t replica) -> const std::vector<int>& {
    return groups[stage * replicas + replica];
  };
  AddBorders(links, groups, stages, replicas, &cut);
  for (int64_t s = 0; s < stages; ++s) {
    std::vector<int> kinds;
    TransferLine reduce;
    std::vector<const std::vector<int>*> members;
    for (int64_t r = 0; r < replicas; ++r) {
      const std::vector<int>& own = group(s, r);
      members.push_back(&own);
      if (own.size() > 1)
        reduce = Slower(reduce, LineOf(links, links.Ring(Collective::kAllReduce, own, kProbeBytes), kProbeBytes));
      for (const int d : own) {
        kinds.push_back(setting.KindOf(d));
        cut.device_of_kind[kinds.back()] = d;
      }
    }
    std::sort(kinds.begin(), kinds.end());
    kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
    cut.kinds.push_back(std::move(kinds));
    cut.tensor_reduce.push_back(reduce);
    cut.replica_gather.push_back(replicas > 1 ? Rings(links, Collective::kAllGather, members) : TransferLine());
    cut.replica_reduce.push_back(replicas > 1 ? Rings(links, Collective::kReduceScatter, members) : TransferLine());
  }
  return cut;
}

bool PinsHold(const Setting& setting, const std::vector<std::vector<int>>& groups, int64_t stages, int64_t replicas) {
  std::vector<int64_t> stage_of(static_cast<size_t>(setting.num_devices()), -1);
  for (int64_t g = 0; g < stages * replicas; ++g) {
    for (const int d : groups[g]) stage_of[d] = g / replicas;
  }
  for (size_t d = 0; d < stage_of.size(); ++d) {
    if (setting.pinned_stage[d] >= 0 && stage_of[d] != setting.pinned_stage[d]) return false;
  }
  return true;
}

}  // namespace motley::planner
