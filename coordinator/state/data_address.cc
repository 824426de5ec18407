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

std::string WhyDataAddressIsWrong(const ClusterState& state, const NodeRecord& node) {
  const std::string& address = node.description.data_address;
  if (!node.connected) return "";
  const bool is_loopback = IsLoopback(address);
  for (const auto& [name, other] : state.nodes) {
    if (!other.connected || OnOneMachine(node, other)) continue;
    const bool is_told_twice = other.description.data_address == address;
    if (!is_loopback && !is_told_twice) continue;
    return absl::StrCat(
        "its data address ", address,
        is_loopback ? absl::StrCat(" is its own machine's alone, and node ", name.value(), " is on another")
                    : absl::StrCat(" is also that of node ", name.value(),
                                   " on another machine (a copied file, or a bridge that each machine has)"),
        ": set worker.data_address (or --data-address) to an address of its own network card and start the worker "
        "again");
  }
  return "";
}

}  // namespace motley::coordinator
