#include "coordinator/state/transports.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "common/program/hand_over_peers.h"

namespace motley::coordinator {
namespace {

// Which group or pair it is: the same in what was planned and in what was found.
using UseKey = std::tuple<bool, int, std::vector<DeviceId>>;
UseKey KeyOf(const TransportUse& use) { return {!use.group.has_value(), use.group.value_or(0), use.devices}; }

bool IsCard(const RankAssignment& rank) { return rank.device.kind == DeviceKind::kCuda; }

TransportUse Planned(std::optional<int> group, const std::vector<int>& members, const std::vector<RankAssignment>& ranks) {
  TransportUse use;
  use.group = group;
  std::vector<TransportMember> choosing;
  for (const int r : members) {
    const DeviceDescription& device = ranks[r].device;
    use.devices.push_back(device.id);
    choosing.push_back({device.id.value(), device.card.nccl_version, device.card.uuid});
  }
  TransportChoice choice = ChooseTransport(choosing);
  use.transport = choice.transport;
  use.why_not_nccl = std::move(choice.why_not_nccl);
  return use;
}

bool HasRanks(const JobRun& run) {
  return run.ranks_in_order && (run.stage == Stage::kStarting || run.stage == Stage::kRunning || run.stage == Stage::kStopping);
}

}  // namespace

std::vector<TransportUse> PlannedTransports(const std::vector<RankAssignment>& ranks) {
  std::vector<TransportUse> planned;
  if (std::none_of(ranks.begin(), ranks.end(), IsCard)) return planned;
  const std::vector<std::vector<int32_t>>& groups = ranks[0].program.groups;
  for (size_t g = 0; g < groups.size(); ++g) {
    planned.push_back(Planned(static_cast<int>(g), {groups[g].begin(), groups[g].end()}, ranks));
  }
  for (const RankAssignment& rank : ranks) {
    for (const int to : HandOverPeersOf(rank.program, rank.evaluation).sends_to) {
      planned.push_back(Planned(std::nullopt, {rank.rank, to}, ranks));
    }
  }
  return planned;
}

std::vector<TransportUse> FoundTransports(const JobRun& run) {
  if (!HasRanks(run)) return {};
  std::map<UseKey, Transport> planned;
  for (const TransportUse& use : run.planned_transports) planned.emplace(KeyOf(use), use.transport);
  std::vector<TransportUse> found = run.transports;
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return KeyOf(a) < KeyOf(b); });
  for (TransportUse& use : found) {
    use.planned.reset();  // no rank's to say
    if (const auto known = planned.find(KeyOf(use)); known != planned.end()) use.planned = known->second;
  }
  return found;
}

std::vector<TransportUse> PlannedTransports(const JobRun& run) {
  return HasRanks(run) ? run.planned_transports : std::vector<TransportUse>();
}

}  // namespace motley::coordinator
