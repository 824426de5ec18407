#include "worker/engine/transport/transport_report.h"

#include <optional>
#include <utility>

namespace motley::engine {

std::vector<TransportUse> ReportTransports(const CommunicatorOptions& options, const std::vector<Introduction>& introductions,
                                           const Communicator& communicator) {
  std::vector<TransportUse> uses;
  const auto add = [&](std::optional<int> group, const std::vector<int>& members, Transport transport,
                       std::optional<NcclLinks> links) {
    TransportUse& use = uses.emplace_back();
    use.group = group;
    for (const int r : members) use.devices.push_back(options.devices[r]);
    use.transport = transport;
    use.nccl_links = std::move(links);
    if (transport == Transport::kTcp)
      use.why_not_nccl = ChooseTransport(MembersOf(members, options.devices, introductions)).why_not_nccl;
  };
  for (int g = 0; g < static_cast<int>(options.groups.size()); ++g) {
    const std::vector<int>& members = options.groups[g];
    if (!members.empty() && members[0] == options.rank) add(g, members, communicator.TransportOf(g), communicator.NcclLinksOf(g));
  }
  for (const int to : options.sends_to)
    add(std::nullopt, {options.rank, to}, communicator.TransportTo(to), communicator.NcclLinksTo(to));
  return uses;
}

}  // namespace motley::engine
