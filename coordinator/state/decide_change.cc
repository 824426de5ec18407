// DescribeChange and AnyAdded.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coordinator/state/decide_view.h"
#include "coordinator/state/setup_reach.h"

namespace motley::coordinator {
namespace {

bool IsAmong(const DeviceDescription& device, const std::vector<DeviceDescription>& devices) {
  return std::ranges::any_of(devices, [&](const DeviceDescription& other) { return IsSameToPlan(device, other); });
}

// Of a node of which a device was used and is not to be used now.
std::string WhyNotUsed(const DecideView& v, const NodeName& name) {
  const auto node = v.state.nodes.find(name);
  if (node == v.state.nodes.end() || !node->second.connected) return "lost";
  if (node->second.drained) return "drained";
  if (node->second.leaves_at) return "told to end";
  if (node->second.held) return "held";
  for (const DeviceDescription& device : v.run.considered) {
    if (NodeOf(device.id) == name && v.run.left_out.contains(device.id)) return "left out";
  }
  return "not to be used now";
}

}  // namespace

std::string DescribeChange(const DecideView& v) {
  // In the order of names, which is another than that of devices: "n-2/gpu0" comes before "n/gpu0", and "n" before "n-2".
  auto nodes = [](const std::vector<DeviceDescription>& in, const std::vector<DeviceDescription>& not_in) {
    std::set<std::string> names;
    for (const DeviceDescription& device : in) {
      if (!IsAmong(device, not_in)) names.insert(NodeOf(device.id).value());
    }
    return names;
  };
  std::vector<std::string> parts, changed;
  std::set<std::string> added = nodes(v.usable, v.run.considered), removed = nodes(v.run.considered, v.usable);
  std::ranges::set_intersection(added, removed, std::back_inserter(changed));
  for (const std::string& name : changed) added.erase(name), removed.erase(name);
  std::erase_if(removed, [&](const std::string& name) {
    const auto node = v.state.nodes.find(NodeName(name));
    if (node == v.state.nodes.end() || !IsUnreached(v.run, node->second)) return false;
    parts.push_back(absl::StrCat(name, " is left out: ", v.run.probes.at(node->first).why));
    return true;
  });
  if (!changed.empty())
    parts.push_back(absl::StrCat(absl::StrJoin(changed, ", "), changed.size() == 1 ? " offers" : " offer", " other devices now"));
  if (!added.empty()) parts.push_back(absl::StrCat(absl::StrJoin(added, ", "), " can be used now"));
  std::map<std::string, std::vector<std::string>> by_why;
  for (const std::string& name : removed) by_why[WhyNotUsed(v, NodeName(name))].push_back(name);
  for (const auto& [why, names] : by_why)
    parts.push_back(absl::StrCat(absl::StrJoin(names, ", "), names.size() == 1 ? " is " : " are ", why));
  return absl::StrJoin(parts, " and ");
}

bool AnyAdded(const DecideView& v) {
  return std::ranges::any_of(v.usable, [&](const DeviceDescription& device) { return !IsAmong(device, v.run.considered); });
}

}  // namespace motley::coordinator
