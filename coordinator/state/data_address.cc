#include "coordinator/state/data_address.h"

#include "absl/strings/str_cat.h"
#include "common/base/address.h"

namespace motley::coordinator {
namespace {

// Of workers that came over the network by the address that they dialled from.
bool OnOneMachine(const NodeRecord& a, const NodeRecord& b) {
  if (a.on_this_machine || b.on_this_machine) return a.on_this_machine == b.on_this_machine;
  return a.peer_address == b.peer_address;
}

}  // namespace

std::string WhyLoopbackIsWrong(const ClusterState& state, const NodeRecord& node) {
  const std::string& address = node.description.data_address;
  if (!node.connected || !IsLoopback(address)) return "";
  for (const auto& [name, other] : state.nodes) {
    if (!other.connected || OnOneMachine(node, other)) continue;
    return absl::StrCat("its data address ", address, " is its own machine's alone, and node ", name.value(),
                        " is on another: set worker.data_address (or --data-address) to an address of its network card and start "
                        "the worker again");
  }
  return "";
}

}  // namespace motley::coordinator
