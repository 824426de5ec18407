#include "coordinator/state/awaited.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coordinator/state/membership.h"

namespace motley::coordinator {
namespace {

std::string StateAndWhy(const char* state, const std::string& why) {
  return why.empty() ? state : absl::StrCat(state, ": ", why);
}

// Why a device that is not usable is not.
std::string WhyAway(const ClusterState& state, const JobRun& run, const DeviceId& device) {
  const auto found = state.nodes.find(NodeOf(device));
  if (found == state.nodes.end()) return "not seen since the coordinator was started";
  const NodeRecord& node = found->second;
  if (!node.connected) return StateAndWhy(node.left ? "left" : "lost", node.reason);
  if (node.drained) return "drained";
  if (node.leaves_at) return "its worker was told to end";
  if (node.held) return StateAndWhy("held", node.reason);
  if (auto out = run.left_out.find(device); out != run.left_out.end()) return StateAndWhy("left out", out->second);
  const auto& offered = node.description.devices;
  const auto it = std::find_if(offered.begin(), offered.end(), [&](const DeviceDescription& d) { return d.id == device; });
  if (it == offered.end()) return "its worker does not offer it";
  if (!it->card.lost.empty()) return it->card.lost;
  if (auto probe = run.probes.find(found->first); probe != run.probes.end()) {
    if (probe->second.stage == ProbeStage::kRefused) return StateAndWhy("refused", probe->second.why);
    if (probe->second.stage == ProbeStage::kUnreached) return StateAndWhy("left out", probe->second.why);
  }
  return "looked at before it takes part again";
}

bool IsAt(const std::string& place, const DeviceId& device) { return device.value() == place || NodeOf(device).value() == place; }

// A node or device that the job may not use, whoever comes: itself, or all that its node offers of it.
bool IsExcludedPlace(const ClusterState& state, const JobRun& run, const DeviceId& place) {
  const auto job = state.jobs.find(run.job);
  if (job == state.jobs.end()) return false;
  const PlannerSection& planner = job->second.config.planner;
  if (IsExcluded(planner, place)) return true;
  const auto node = state.nodes.find(NodeOf(place));
  if (node == state.nodes.end()) return false;
  bool any = false, any_allowed = false;
  for (const DeviceDescription& device : node->second.description.devices) {
    if (!IsAt(place.value(), device.id)) continue;
    (IsExcluded(planner, device.id) ? any : any_allowed) = true;
  }
  return any && !any_allowed;
}

// All devices that were ever seen here: by the coordinator since its start, by this job, or by whoever measured them; without
// those that are excluded.
std::set<DeviceId> KnownDevices(const ClusterState& state, const JobRun& run) {
  std::set<DeviceId> known = run.took_part;
  for (const auto& [device, speed] : state.speeds) known.insert(device);
  for (const auto& [name, node] : state.nodes) {
    for (const DeviceDescription& device : node.description.devices) known.insert(device.id);
  }
  if (const auto job = state.jobs.find(run.job); job != state.jobs.end()) {
    std::erase_if(known, [&](const DeviceId& device) { return IsExcluded(job->second.config.planner, device); });
  }
  return known;
}

std::set<DeviceId> IdsOf(const std::vector<DeviceDescription>& devices) {
  const std::vector<DeviceId> ids = Ids(devices);
  return {ids.begin(), ids.end()};
}

std::string PlaceAndWhy(const std::string& place, const std::string& why) { return absl::StrCat(place, " (", why, ")"); }

}  // namespace

std::string NamedAway(const ClusterState& state, const JobRun& run, const std::vector<DeviceDescription>& usable_devices) {
  if (run.named.empty()) return "";
  const std::set<DeviceId> known = KnownDevices(state, run), usable = IdsOf(usable_devices);
  std::vector<std::string> away;
  for (const std::string& place : run.named) {
    if (IsExcludedPlace(state, run, DeviceId(place))) continue;
    DeviceId first(place);  // where none is known: a coordinator that was restarted knows what came since
    bool any_known = false, any_usable = false;
    for (const DeviceId& device : known) {
      if (!IsAt(place, device)) continue;
      if (!std::exchange(any_known, true)) first = device;
      any_usable = any_usable || usable.contains(device);
    }
    if (!any_usable) away.push_back(PlaceAndWhy(place, WhyAway(state, run, first)));
  }
  return absl::StrJoin(away, ", ");
}

std::string PartnersAway(const ClusterState& state, const JobRun& run) {
  const std::set<DeviceId> known = KnownDevices(state, run), usable = IdsOf(UsableDevices(state, run));
  std::vector<std::string> away;
  for (const DeviceId& device : run.took_part) {
    if (known.contains(device) && !usable.contains(device))
      away.push_back(PlaceAndWhy(device.value(), WhyAway(state, run, device)));
  }
  return absl::StrJoin(away, ", ");
}

}  // namespace motley::coordinator
