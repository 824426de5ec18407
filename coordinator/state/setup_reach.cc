#include "coordinator/state/setup_reach.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/address.h"
#include "common/base/clean_text.h"
#include "common/base/cut_text.h"
#include "coordinator/state/cluster.h"
#include "coordinator/state/data_address.h"

namespace motley::coordinator {
namespace {

constexpr size_t kMostErrorBytes = 512;
constexpr char kLargePackets[] = "large packets";

std::string AddressAndPort(const NodeDescription& node) { return ToText(HostPort{node.data_address, node.reach_port}); }

// What a worker says of a way begins with node and address, which stand here already.
std::string WhatHappened(const NodeDescription& target, const std::string& error) {
  const std::string begin =
      absl::StrCat("node ", target.name.value(), " is not reached at ", target.data_address, " port ", target.reach_port, ": ");
  return CutText(CleanLine(absl::StartsWith(error, begin) ? error.substr(begin.size()) : error), kMostErrorBytes);
}

struct Suspect {
  size_t ways = 0, to_it = 0;  // broken
};

// Greater: rather to be left out.
auto Weight(const ClusterState& state, const JobRun& run, const NodeName& name, const Suspect& suspect) {
  const NodeRecord& node = state.nodes.at(name);
  const auto proven = run.proven.find(name);
  const bool has_trained = proven != run.proven.end() && proven->second == node.description.incarnation;
  return std::tuple(suspect.ways, suspect.to_it, !WhyDataAddressIsWrong(state, node).empty(), !has_trained, !node.on_this_machine,
                    -static_cast<int64_t>(node.description.devices.size()), name);
}

}  // namespace

NodeName RatherLeftOut(const ClusterState& state, const JobRun& run, const std::vector<Way>& ways) {
  std::map<NodeName, Suspect> suspects;
  for (const Way& way : ways) {
    ++suspects[way.first].ways;
    ++suspects[way.second].ways;
    ++suspects[way.second].to_it;
  }
  return std::max_element(suspects.begin(), suspects.end(),
                          [&](const auto& a, const auto& b) {
                            return Weight(state, run, a.first, a.second) < Weight(state, run, b.first, b.second);
                          })
      ->first;
}

std::string BrokenWay(const ClusterState& state, const Way& way, const std::string& error) {
  const NodeRecord& target = state.nodes.at(way.second);
  const std::string happened = WhatHappened(target.description, error);
  std::string text = absl::StrCat(way.first.value(), " does not reach ", way.second.value(), " at ",
                                  AddressAndPort(target.description), " (", happened, ")");
  if (const std::string wrong = WhyDataAddressIsWrong(state, target); !wrong.empty()) return absl::StrCat(text, "; ", wrong);
  if (absl::StrContains(happened, kLargePackets)) return text;  // which says what helps
  return absl::StrCat(text, "; see that worker.data_address of node ", way.second.value(),
                      " is the address of its card in that network, and open the ports of /proc/sys/net/ipv4/ip_local_port_range "
                      "between the data addresses");
}

std::map<NodeName, std::string> OutOfReach(const ClusterState& state, const JobRun& run) {
  std::map<Way, std::string> broken = run.reach.broken;
  std::erase_if(broken, [&](const auto& entry) {
    return !state.nodes.contains(entry.first.first) || !state.nodes.contains(entry.first.second);
  });
  std::map<NodeName, std::string> out;
  while (!broken.empty()) {
    std::vector<Way> ways;
    for (const auto& [way, error] : broken) ways.push_back(way);
    const NodeName worst = RatherLeftOut(state, run, ways);
    const auto to_it = std::find_if(broken.begin(), broken.end(), [&](const auto& entry) { return entry.first.second == worst; });
    const auto from_it =
        std::find_if(broken.begin(), broken.end(), [&](const auto& entry) { return entry.first.first == worst; });
    const auto& [way, error] = *(to_it != broken.end() ? to_it : from_it);
    out[worst] = BrokenWay(state, way, error);
    std::erase_if(broken, [&](const auto& entry) { return entry.first.first == worst || entry.first.second == worst; });
  }
  return out;
}

bool IsUnreached(const JobRun& run, const NodeRecord& node) {
  const auto probe = run.probes.find(node.description.name);
  return probe != run.probes.end() && probe->second.stage == ProbeStage::kUnreached &&
         probe->second.incarnation == node.description.incarnation;
}

std::string WithoutWhom(const ClusterState& state, const JobRun& run) {
  std::vector<std::string> parts;
  for (const auto& [name, node] : state.nodes) {
    if (node.connected && IsUnreached(run, node)) {
      parts.push_back(absl::StrCat("without node ", name.value(), ": ", run.probes.at(name).why));
    }
  }
  return absl::StrJoin(parts, "; ");
}

}  // namespace motley::coordinator
