#include "coordinator/state/witness.h"

#include <iterator>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace motley::coordinator {

std::string WhyNoWitness(const ClusterState& state) {
  std::set<std::string> addresses, names;
  for (const auto& [name, member] : state.members) {
    const auto node = state.nodes.find(name);
    if (node != state.nodes.end() && node->second.connected) return "";
    addresses.insert(member.coordinators.begin(), member.coordinators.end());
    names.insert(name.value());
  }
  if (addresses.size() < 2) return "";
  constexpr size_t kMostNamed = 8;
  while (names.size() > kMostNamed) names.erase(std::prev(names.end()));
  return absl::StrCat("another machine may have taken the cluster over (nodes look for it at ", absl::StrJoin(addresses, ", "),
                      "), and no member is here that would know: waits for one of ", absl::StrJoin(names, ", "));
}

}  // namespace motley::coordinator
