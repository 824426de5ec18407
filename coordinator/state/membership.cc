#include "coordinator/state/membership.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/clean_text.h"
#include "common/base/count.h"
#include "common/base/listed.h"
#include "common/base/names.h"
#include "common/base/nearest.h"
#include "common/base/status_macros.h"
#include "common/base/version.h"

namespace motley::coordinator {
namespace {

constexpr size_t kMaxDevices = 1024;  // of a node
constexpr size_t kMostNames = 8;      // in a sentence

absl::Status CheckDescription(const NodeDescription& node) {
  MOTLEY_RETURN_IF_ERROR(CheckName("hello.node", node.name.value()));
  MOTLEY_RETURN_IF_ERROR(CheckHostAddress("hello.data_address", node.data_address));
  if (node.devices.empty())
    return absl::InvalidArgumentError(absl::StrCat("hello.devices is empty: node ", node.name.value(), " declares no device"));
  if (node.devices.size() > kMaxDevices) {
    return absl::InvalidArgumentError(absl::StrCat("hello.devices holds ", node.devices.size(), " devices of node ",
                                                   node.name.value(), "; at most ", kMaxDevices, " are allowed"));
  }
  std::set<DeviceId> seen;
  for (const DeviceDescription& device : node.devices) {
    MOTLEY_RETURN_IF_ERROR(CheckDeviceId("hello.devices.id", node.name, device.id));
    if (!seen.insert(device.id).second) {
      return absl::InvalidArgumentError(absl::StrCat("hello.devices.id '", device.id.value(), "' is there twice"));
    }
  }
  return absl::OkStatus();
}

bool UsesNode(const JobRun& run, const NodeName& node) {
  return std::any_of(run.ranks.begin(), run.ranks.end(), [&](const RankRun& r) { return NodeOf(r.device) == node && !r.ended; });
}

// The first few names; a large cluster has many.
std::string Some(const std::vector<std::string>& names) {
  const size_t shown = names.size() > kMostNames + 1 ? kMostNames : names.size();
  const std::string list = absl::StrJoin(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", ");
  return shown == names.size() ? list : absl::StrCat(list, " and ", names.size() - shown, " more");
}

bool HasProcesses(Stage stage) {
  return stage == Stage::kProfiling || stage == Stage::kStarting || stage == Stage::kRunning || stage == Stage::kStopping;
}

}  // namespace

LeaseDecision DecideLeases(absl::Duration now, const ClusterState& state, absl::Duration lease) {
  size_t connected = 0, silent = 0;
  for (const auto& [name, node] : state.nodes) {
    connected += node.connected;
    silent += node.connected && now - node.last_seen > lease;
  }
  const bool many = silent >= 2 && 2 * silent > connected;
  LeaseDecision decision;
  for (const auto& [name, node] : state.nodes) {
    const absl::Duration silence = now - node.last_seen;
    if (!node.connected || silence <= (many ? 2 * lease : lease)) continue;
    decision.expired.emplace_back(
        name, absl::StrFormat("silent for %.1f s, its lease is %.1f s; its worker's log says whether the way is closed",
                              absl::ToDoubleSeconds(silence), absl::ToDoubleSeconds(lease)));
  }
  if (many && decision.expired.size() < silent) {
    decision.brake =
        absl::StrFormat("%d of %d nodes fell silent at once: rather the network than the nodes; given another %.1f s", silent,
                        connected, absl::ToDoubleSeconds(lease));
  }
  return decision;
}

absl::Status CheckAdmission(const ClusterState& state, const NodeDescription& description) {
  if (absl::Status status = CheckDescription(description); !status.ok()) return status;
  if (description.protocol < kOldestSessionProtocol || description.protocol > kSessionProtocol) {
    const bool newer = description.protocol > kSessionProtocol;
    return absl::UnimplementedError(absl::StrCat("worker ", description.name.value(), " of version ", Quoted(description.version),
                                                 " speaks protocol ", description.protocol, ", the coordinator of version ",
                                                 kVersion, " speaks ", kOldestSessionProtocol, " and ", kSessionProtocol,
                                                 "; upgrade the ", newer ? "coordinator" : "worker", " (docs/use/upgrading.md)"));
  }
  auto it = state.nodes.find(description.name);
  if (it != state.nodes.end() && it->second.connected && it->second.description.incarnation != description.incarnation) {
    return absl::AlreadyExistsError(absl::StrCat("a worker named '", description.name.value(),
                                                 "' is connected already (data address ", it->second.description.data_address,
                                                 "); give this one another name with --node, or stop the other"));
  }
  return absl::OkStatus();
}

bool IsExcluded(const PlannerSection& planner, const DeviceId& device) {
  const std::vector<std::string> places = Listed(planner.exclude);
  return std::any_of(places.begin(), places.end(),
                     [&](const std::string& place) { return place == device.value() || place == NodeOf(device).value(); });
}

namespace {

// The nodes and devices that are known here: of workers, members, and profiles of before.
std::vector<std::string> KnownPlaces(const ClusterState& state) {
  std::set<std::string> known;
  for (const auto& [name, node] : state.nodes) {
    known.insert(name.value());
    for (const DeviceDescription& device : node.description.devices) known.insert(device.id.value());
  }
  for (const auto& [device, speed] : state.speeds) known.insert({device.value(), NodeOf(device).value()});
  return {known.begin(), known.end()};
}

// It is known without its devices: a member, or one that is drained, that has not come since the coordinator was started.
bool IsOfBareNode(const ClusterState& state, const std::string& place) {
  const auto node = state.nodes.find(NodeOf(DeviceId(place)));
  return node != state.nodes.end() && node->second.description.devices.empty();
}

}  // namespace

absl::Status CheckPlaces(const ClusterState& state, const PlannerSection& planner) {
  const std::vector<std::string> known = KnownPlaces(state);
  const auto check = [&](const char* key, const std::string& place) {
    if (known.empty() || std::find(known.begin(), known.end(), place) != known.end() || IsOfBareNode(state, place)) {
      return absl::OkStatus();
    }
    const std::string nearest = NearestWord(place, known);
    return absl::InvalidArgumentError(
        absl::StrCat(key, ": no node or device ", Quoted(place), " has come since the coordinator was started",
                     nearest.empty() ? "" : absl::StrCat("; did you mean ", Quoted(nearest), "?"),
                     "; `motley nodes` lists those that have, and a node that is away has to come first"));
  };
  for (const std::string& place : Listed(planner.exclude)) MOTLEY_RETURN_IF_ERROR(check("planner.exclude", place));
  for (const std::string& pin : Listed(planner.pins)) {
    const std::string place = pin.substr(pin.find('=') + 1);
    if (planner.pins_required && IsExcluded(planner, DeviceId(place))) {
      return absl::InvalidArgumentError(absl::StrCat("planner.pins: ", Quoted(pin), " contradicts planner.exclude, which names ",
                                                     planner.exclude, ": take one of them out"));
    }
    MOTLEY_RETURN_IF_ERROR(check("planner.pins", place));
  }
  return absl::OkStatus();
}

bool MayBeUsed(const NodeRecord& node) { return node.connected && !node.drained && !node.held && !node.leaves_at; }

bool LacksInputs(const ClusterState& state, const JobId& job, const NodeName& node) {
  const auto lacks = state.lacks_inputs.find(job);
  return lacks != state.lacks_inputs.end() && lacks->second.contains(node);
}

std::vector<DeviceDescription> UsableDevices(const ClusterState& state, const JobRun& run, const std::set<NodeName>& newcomers) {
  std::vector<DeviceDescription> usable;
  const auto job = state.jobs.find(run.job);
  const PlannerSection everything, &planner = job == state.jobs.end() ? everything : job->second.config.planner;
  const bool probing = ProbesNewcomers(state, run);
  for (const auto& [name, node] : state.nodes) {
    if (!MayBeUsed(node)) continue;
    if (IsUnreached(run, node)) continue;
    if (LacksInputs(state, run.job, name)) continue;
    if (probing && !IsTrusted(state, run, name) && !newcomers.contains(name)) continue;
    for (const DeviceDescription& device : node.description.devices) {
      if (!run.left_out.contains(device.id) && !IsExcluded(planner, device.id) && device.card.lost.empty()) {
        usable.push_back(device);
      }
    }
  }
  std::sort(usable.begin(), usable.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  return usable;
}

std::set<NodeName> NotRefused(const ClusterState& state, const JobRun& run) {
  std::set<NodeName> names;
  for (const auto& [name, node] : state.nodes) {
    const auto probe = run.probes.find(name);
    const bool refused = probe != run.probes.end() && probe->second.incarnation == node.description.incarnation &&
                         (probe->second.stage == ProbeStage::kRefused || probe->second.stage == ProbeStage::kUnreached);
    if (!refused) names.insert(name);
  }
  return names;
}

std::vector<DeviceId> Ids(const std::vector<DeviceDescription>& devices) {
  std::vector<DeviceId> ids;
  for (const DeviceDescription& device : devices) ids.push_back(device.id);
  return ids;
}

std::string WhyNoDevice(const ClusterState& state, const JobRun& run) {
  std::vector<std::string> lost, left, drained, leaving, held;
  for (const auto& [name, node] : state.nodes) {
    if (node.forgotten) continue;
    if (!node.connected) {
      (node.left ? left : lost).push_back(name.value());
    } else if (node.drained) {
      drained.push_back(name.value());
    } else if (node.leaves_at) {
      leaving.push_back(name.value());
    } else if (node.held) {
      held.push_back(name.value());
    }
  }
  std::vector<std::string> parts, remedies;
  if (state.nodes.empty()) parts.push_back("no worker has joined yet");
  if (!lost.empty()) parts.push_back(absl::StrCat(Count(lost.size(), "node is", "nodes are"), " lost: ", Some(lost)));
  if (!left.empty()) parts.push_back(absl::StrCat(Count(left.size(), "node", "nodes"), " left: ", Some(left)));
  if (!drained.empty()) {
    parts.push_back(absl::StrCat(Count(drained.size(), "node is", "nodes are"), " drained: ", Some(drained)));
    remedies.push_back(absl::StrCat("undrain ", Some(drained)));
  }
  if (!leaving.empty())
    parts.push_back(absl::StrCat(Count(leaving.size(), "node was", "nodes were"), " told to end: ", Some(leaving)));
  if (!held.empty()) parts.push_back(absl::StrCat(Count(held.size(), "node is", "nodes are"), " held: ", Some(held)));
  if (const auto job = state.jobs.find(run.job); job != state.jobs.end() && !job->second.config.planner.exclude.empty()) {
    parts.push_back(absl::StrCat("planner.exclude names ", job->second.config.planner.exclude));
  }
  if (const std::string without = WithoutWhom(state, run); !without.empty()) parts.push_back(without);
  for (const auto& [device, why] : run.left_out) parts.push_back(absl::StrCat(device.value(), " is left out: ", why));
  for (const auto& [name, node] : state.nodes) {
    for (const DeviceDescription& device : node.description.devices) {
      if (!device.card.lost.empty()) parts.push_back(absl::StrCat(device.id.value(), ": ", device.card.lost));
    }
  }
  lost.insert(lost.end(), left.begin(), left.end());
  std::set<std::string> left_out;
  for (const auto& [device, why] : run.left_out) left_out.insert(NodeOf(device).value());
  if (!left_out.empty()) {
    remedies.push_back(absl::StrCat("mend that and start motley-worker anew on ",
                                    Some(std::vector<std::string>(left_out.begin(), left_out.end()))));
  }
  if (!lost.empty()) remedies.push_back(absl::StrCat("start motley-worker again on ", Some(lost)));
  if (remedies.empty() || (lost.empty() && left_out.empty())) remedies.push_back("start motley-worker on a node");
  return absl::StrCat("no device can be used (", absl::StrJoin(parts, "; "), "); ", absl::StrJoin(remedies, ", or "),
                      "; the job then goes on by itself");
}

bool IsGone(const ClusterState& state, const RankRun& rank) {
  if (rank.ended) return true;
  auto it = state.nodes.find(NodeOf(rank.device));
  return it == state.nodes.end() || !it->second.connected || it->second.description.incarnation != rank.incarnation;
}

bool AllGone(const ClusterState& state, const JobRun& run) {
  return std::all_of(run.ranks.begin(), run.ranks.end(), [&](const RankRun& rank) { return IsGone(state, rank); });
}

std::string NodeStateName(const ClusterState& state, const NodeRecord& node) {
  if (!node.connected) return node.left ? "left" : "lost";
  if (node.leaves_at) return "leaving";
  if (!node.drained) {
    if (node.held) return "held";
    if (!state.run) return "ready";
    if (AllLeftOut(*state.run, node)) return "refused";
    auto probe = state.run->probes.find(node.description.name);
    if (probe == state.run->probes.end()) return "ready";
    const bool refused = probe->second.stage == ProbeStage::kRefused || probe->second.stage == ProbeStage::kUnreached;
    return refused ? "refused" : "probing";
  }
  return state.run && HasProcesses(state.run->stage) && UsesNode(*state.run, node.description.name) ? "draining" : "drained";
}

std::string DeviceStateName(const ClusterState& state, const DeviceId& device, JobId* job) {
  *job = JobId();
  const bool processes = state.run && HasProcesses(state.run->stage);
  if (processes) {
    for (const RankRun& rank : state.run->ranks) {
      if (rank.device != device || IsGone(state, rank)) continue;
      *job = state.run->job;
      return state.run->stage == Stage::kProfiling ? "profiling" : "training";
    }
  }
  // Idle is what a job could have: not a device of a node that none may use.
  const auto node = state.nodes.find(NodeOf(device));
  const std::string node_state = node == state.nodes.end() ? "lost" : NodeStateName(state, node->second);
  if (node_state != "ready") return node_state;
  for (const DeviceDescription& each : node->second.description.devices) {
    if (each.id == device && !each.card.lost.empty()) return "lost";
  }
  return processes && state.run->stage == Stage::kRunning ? "unused" : "idle";
}

}  // namespace motley::coordinator
