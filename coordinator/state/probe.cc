#include "coordinator/state/probe.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/address.h"
#include "common/base/count.h"
#include "coordinator/state/cluster.h"
#include "coordinator/state/data_verdict.h"
#include "coordinator/state/initial_weights.h"
#include "coordinator/state/membership.h"
#include "coordinator/state/setup_reach.h"
#include "planner/costs/profile_series.h"

namespace motley::coordinator {
namespace {

// A swap waits at most this long for other newcomers.
constexpr absl::Duration kNear = absl::Seconds(10);

size_t TrustedDevices(const ClusterState& state, const JobRun& run) {
  size_t devices = 0;
  for (const auto& [name, node] : state.nodes) {
    if (MayBeUsed(node) && IsTrusted(state, run, name)) devices += node.description.devices.size();
  }
  return devices;
}

// What is wrong with the newcomer's data or folder; empty: nothing.
std::string StorageComplaint(const JobRecord& job, const ProbeToken& token, const StorageReport& report) {
  if (!report.error.empty()) return report.error;
  if (!token.token.empty() && !report.token_seen) {
    return absl::StrCat("checkpoint.folder '", job.config.checkpoint.folder, "' is not the same folder as on node ",
                        token.writer.value(), ": what that node wrote cannot be read; use a folder that all nodes share");
  }
  if (!job.data.digest.empty()) {
    const std::string other = OtherData(job.config, report, {job.data, job.validation, NodeName()});
    if (!other.empty()) return absl::StrCat(other, "; copy there what the other nodes have");
  }
  return WeightsComplaint(job, ReferenceOfWeights(job, {}), report);
}

// The planner needs times of the layer; embedding and head may take next to none.
bool Measures(const UnitProfile& unit, double least_sample_seconds) {
  const bool can_be_part = unit.part >= 0 && unit.part < 1;
  return can_be_part && !unit.points.empty() &&
         std::all_of(unit.points.begin(), unit.points.end(), [&](const ComputePoint& point) {
           const auto samples = static_cast<double>(point.microbatch);
           const auto may_be = [&](double seconds) { return seconds >= 0 && seconds <= planner::kMostSampleSeconds * samples; };
           const auto can_be = [&](double seconds) {
             return seconds > 0 && seconds >= least_sample_seconds * samples && may_be(seconds);
           };
           return point.microbatch > 0 && can_be(point.forward_seconds) && can_be(point.backward_seconds) &&
                  may_be(point.backward_input_seconds) && may_be(point.backward_weight_seconds) &&
                  may_be(point.part_forward_seconds) && may_be(point.part_backward_seconds);
         });
}

std::string ProfileComplaint(const std::vector<DeviceId>& to_measure, const ProfileReport& report) {
  if (!report.error.empty()) return absl::StrCat("profiling failed: ", report.error);
  for (const ComputeProfile& profile : report.compute) {
    if (!Measures(profile.embedding, 0) || !Measures(profile.layer, planner::kLeastSampleSeconds) || !Measures(profile.head, 0)) {
      return absl::StrCat("its profile of ", profile.device.value(), " has times that cannot be");
    }
  }
  for (const DeviceId& device : to_measure) {
    const bool there = std::any_of(report.compute.begin(), report.compute.end(),
                                   [&](const ComputeProfile& profile) { return profile.device == device; });
    if (!there) return absl::StrCat("it profiled, but reported nothing for ", device.value());
  }
  return "";
}

bool IsProven(const JobRun& run, const NodeRecord& node) {
  auto proven = run.proven.find(node.description.name);
  return proven != run.proven.end() && proven->second == node.description.incarnation;
}

// Nodes of the epoch that never were in one that made a step, lost or not; none where nobody is left to go on with.
std::set<NodeName> NewNodes(const ClusterState& state, const JobRun& run) {
  std::set<NodeName> unproven;
  bool any_proven = false;
  for (const DeviceDescription& device : run.considered) {
    auto node = state.nodes.find(NodeOf(device.id));
    if (node == state.nodes.end()) continue;
    if (!IsProven(run, node->second)) {
      unproven.insert(node->first);
    } else if (MayBeUsed(node->second)) {
      any_proven = true;
    }
  }
  return any_proven ? unproven : std::set<NodeName>();
}

struct View {
  absl::Duration now;
  const ClusterState& state;
  const ProbeConfig& config;
  const JobRun& run;
  const JobRecord& job;
};

std::string Late(const View& v, absl::Duration limit, const std::string& what) {
  return absl::StrFormat("%s within %.0f s", what, absl::ToDoubleSeconds(limit));
}

bool TokenWriterLives(const View& v) {
  const ProbeToken& token = v.run.probe_token;
  auto writer = v.state.nodes.find(token.writer);
  return !token.token.empty() && writer != v.state.nodes.end() && MayBeUsed(writer->second) &&
         writer->second.description.incarnation == token.incarnation;
}

// Asks for the token, then for the newcomer's check of it; then judges.
std::optional<ProbeAction> DecideStorage(const View& v, const NodeName& name, const Probe& probe) {
  const bool compares = !v.job.config.checkpoint.folder.empty();
  if (v.now - probe.since > v.config.storage_timeout) {
    return RefuseProbe{name,
                       Late(v, v.config.storage_timeout,
                            absl::StrCat("its storage check was not answered (can it read '", v.job.config.data.path, "'?)"))};
  }
  if (probe.storage) {
    const std::string complaint = StorageComplaint(v.job, compares ? v.run.probe_token : ProbeToken(), *probe.storage);
    if (!complaint.empty()) return RefuseProbe{name, complaint};
    return AskReach{name};
  }
  if (probe.storage_asked) return std::nullopt;
  if (!compares) return AskStorage{name};
  const ProbeToken& token = v.run.probe_token;
  if (TokenWriterLives(v) && token.error.empty()) {
    if (token.written) return AskStorage{name};
    return std::nullopt;  // it is being written
  }
  if (!token.error.empty() && TokenWriterLives(v)) {
    return RefuseProbe{name,
                       absl::StrCat("its checkpoint folder cannot be compared: node ", token.writer.value(), ": ", token.error)};
  }
  for (const auto& [writer, node] : v.state.nodes) {
    if (MayBeUsed(node) && IsTrusted(v.state, v.run, writer)) return AskToken{writer};
  }
  return std::nullopt;
}

std::optional<ProbeAction> DecideReach(const View& v, const NodeName& name, const Probe& probe) {
  if (!probe.unreachable.empty()) return RefuseProbe{name, probe.unreachable};
  if (probe.unanswered.empty()) return AskProfile{name};
  if (v.now - probe.since <= v.config.reach_timeout) return std::nullopt;
  return RefuseProbe{name, Late(v, v.config.reach_timeout,
                                absl::StrCat("whether it and the nodes of the job reach each other was not said by ",
                                             absl::StrJoin(probe.unanswered, ", ", [](std::string* out, const NodeName& n) {
                                               out->append(n.value());
                                             })))};
}

std::optional<ProbeAction> DecideUnreached(const View& v, const NodeName& name, const Probe& probe) {
  if (!probe.trying_again) {
    if (v.now < probe.again_at) return std::nullopt;
    return TryReachAgain{name};
  }
  if (v.now - probe.since > v.config.reach_timeout)
    return StillUnreached{name, probe.unreachable.empty() ? probe.why : probe.unreachable};
  if (!probe.unanswered.empty()) return std::nullopt;
  if (!probe.unreachable.empty()) return StillUnreached{name, probe.unreachable};
  return ReachedAgain{name};
}

std::optional<ProbeAction> DecideProfile(const View& v, const NodeName& name, const Probe& probe) {
  if (probe.profile) {
    const std::string complaint = ProfileComplaint(probe.to_measure, *probe.profile);
    if (!complaint.empty()) return RefuseProbe{name, complaint};
    return AwaitPlan{name};
  }
  if (v.now - probe.since <= v.config.profile_timeout) return std::nullopt;
  return RefuseProbe{name, Late(v, v.config.profile_timeout, "its profile was not finished")};
}

// The job stands still for want of a plan: there is nothing that a newcomer could stop, and those that come back one by one have
// a plan only together.
bool NeedsNoTrial(const View& v) { return !v.run.proven_without_plan.empty(); }

// It was refused while the job did without it; since then the job stands still for want of a plan.
bool IsWantedMore(const View& v, const Probe& probe) { return NeedsNoTrial(v) && probe.since < v.run.without_plan_since; }

// One that takes longer is not waited for: what it says then is dropped.
bool IsTrialUnderWay(const View& v) { return v.run.trial && v.now - v.run.trial->since <= v.config.plan_timeout; }

std::optional<ProbeAction> DecidePlan(const View& v, const NodeName& name, const Probe& probe) {
  if (NeedsNoTrial(v)) return PassProbe{name};
  if (probe.plan && !probe.plan->ok()) {
    return RefuseProbe{name, absl::StrCat("there is no plan with it: ", std::string(probe.plan->message()))};
  }
  if (probe.plan) return PassProbe{name};
  if (!v.run.trial || !v.run.trial->nodes.contains(name) || IsTrialUnderWay(v)) return std::nullopt;
  return RefuseProbe{name, Late(v, v.config.plan_timeout, "there was no plan with it")};
}

bool IsWanted(const View& v, const NodeName& name, const NodeRecord& node) {
  return MayBeUsed(node) && !IsTrusted(v.state, v.run, name) && !AllLeftOut(v.run, node) &&
         !LacksInputs(v.state, v.run.job, name);
}

// Null: nobody from its address waits.
const AddressPause* PauseOf(const View& v, const NodeRecord& node) {
  auto pause = v.run.address_pauses.find(node.peer_address);
  const bool waits =
      pause != v.run.address_pauses.end() && v.now < pause->second.until && IsCountedByAddress(v.state, v.run, node);
  return waits ? &pause->second : nullptr;
}

// What the probe says is of the node as it is now; else DecideNode ends it, or begins it anew, in this very turn.
bool IsCurrent(const View& v, const NodeName& name, const Probe& probe) {
  const auto node = v.state.nodes.find(name);
  return node != v.state.nodes.end() && probe.incarnation == node->second.description.incarnation &&
         IsWanted(v, name, node->second) && PauseOf(v, node->second) == nullptr;
}

// Of all that wait for one at once: a rack that comes makes one trial.
std::optional<ProbeAction> DecideTrial(const View& v) {
  if (NeedsNoTrial(v)) return std::nullopt;
  TryPlan together, single;
  for (const auto& [name, probe] : v.run.probes) {
    const bool refused_now = v.run.trial && v.run.trial->nodes.contains(name);  // by DecidePlan, as it took too long
    if (probe.stage != ProbeStage::kPlan || probe.plan || refused_now || !IsCurrent(v, name, probe)) continue;
    if (!probe.alone) together.nodes.insert(name);
    if (probe.alone && single.nodes.empty()) single.nodes.insert(name);
  }
  if (!together.nodes.empty()) return together;
  if (!single.nodes.empty()) return single;
  return std::nullopt;
}

std::optional<ProbeAction> DecideNode(const View& v, const NodeName& name, const NodeRecord& node) {
  auto found = v.run.probes.find(name);
  if (!IsWanted(v, name, node)) {
    if (found == v.run.probes.end()) return std::nullopt;
    return ForgetProbe{name};
  }
  const AddressPause* pause = PauseOf(v, node);
  const bool held_off = found != v.run.probes.end() && found->second.stage == ProbeStage::kRefused &&
                        found->second.incarnation == node.description.incarnation && v.now < found->second.again_at;
  if (pause != nullptr && !held_off) {
    return HoldOff{name, pause->until,
                   absl::StrCat(Count(pause->failures, "swap"), " with nodes from address ", node.peer_address, " failed")};
  }
  if (found == v.run.probes.end()) return BeginProbe{name};
  const Probe& probe = found->second;
  if (probe.incarnation != node.description.incarnation) return BeginProbe{name};
  switch (probe.stage) {
    case ProbeStage::kStorage: {
      const size_t devices = TrustedDevices(v.state, v.run) + node.description.devices.size();
      if (devices > static_cast<size_t>(v.config.max_devices)) {
        return RefuseProbe{name, absl::StrCat("with it the job would have ", devices, " devices; at most ", v.config.max_devices,
                                              " are planned with")};
      }
      return DecideStorage(v, name, probe);
    }
    case ProbeStage::kReach:
      return DecideReach(v, name, probe);
    case ProbeStage::kProfile:
      return DecideProfile(v, name, probe);
    case ProbeStage::kPlan:
      return DecidePlan(v, name, probe);
    case ProbeStage::kRefused:
      if (v.now >= probe.again_at || (pause == nullptr && IsWantedMore(v, probe))) return BeginProbe{name};
      return std::nullopt;
    case ProbeStage::kUnreached:
      return DecideUnreached(v, name, probe);
  }
  return std::nullopt;
}

}  // namespace

bool IsTrusted(const ClusterState& state, const JobRun& run, const NodeName& name) {
  auto node = state.nodes.find(name);
  auto passed = run.storage_ok.find(name);
  return node != state.nodes.end() && passed != run.storage_ok.end() && passed->second == node->second.description.incarnation;
}

bool AllLeftOut(const JobRun& run, const NodeRecord& node) {
  const std::vector<DeviceDescription>& devices = node.description.devices;
  return !devices.empty() && std::all_of(devices.begin(), devices.end(),
                                         [&](const DeviceDescription& device) { return run.left_out.contains(device.id); });
}

std::set<NodeName> UnprovenNodes(const ClusterState& state, const JobRun& run) {
  std::set<NodeName> unproven = NewNodes(state, run);
  std::erase_if(unproven, [&](const NodeName& name) { return !MayBeUsed(state.nodes.at(name)); });
  return unproven;
}

std::set<NodeName> BlamedNewcomers(const ClusterState& state, const JobRun& run, const Failure& failure) {
  const bool before_first_step = run.stage == Stage::kProfiling || run.epoch_steps == 0;
  const std::set<NodeName> unproven = NewNodes(state, run);
  if (!before_first_step || unproven.empty()) return {};
  const NodeName at = failure.device.empty() ? failure.node : NodeOf(failure.device);
  const FailureKind kind = failure.kind;
  // Whoever lost its peers, or could not measure with them, speaks of the others.
  const bool speaks_of_others =
      kind == FailureKind::kPeerLost || kind == FailureKind::kProfile || kind == FailureKind::kNonFinite;
  if (unproven.contains(at) && !speaks_of_others) return {at};
  // A rank that trained before and stands still now waits for one that is new.
  return speaks_of_others || kind == FailureKind::kHung ? UnprovenNodes(state, run) : std::set<NodeName>();
}

absl::Duration PauseAfterRefusals(const ProbeConfig& config, int before) {
  absl::Duration pause = config.first_pause;
  for (int i = 0; i < before && pause < config.longest_pause; ++i) pause *= 2;
  return std::min(pause, config.longest_pause);
}

bool IsCountedByAddress(const ClusterState& state, const JobRun& run, const NodeRecord& node) {
  if (node.peer_address.empty() || IsLoopback(node.peer_address)) return false;
  return std::none_of(state.nodes.begin(), state.nodes.end(), [&](const auto& entry) {
    return entry.second.peer_address == node.peer_address && IsProven(run, entry.second);
  });
}

void CountFailedSwap(absl::Duration now, const ProbeConfig& config, const std::string& address, absl::Duration cost,
                     std::map<std::string, AddressPause>* pauses) {
  constexpr size_t kMostAddresses = 1000;
  std::erase_if(*pauses, [&](const auto& entry) { return now - entry.second.until > config.longest_pause; });
  AddressPause& pause = (*pauses)[address];
  const absl::Duration wanted = std::max(PauseAfterRefusals(config, pause.failures), config.pauses_of_cost * cost);
  pause.until = now + std::min(wanted, config.longest_pause);
  ++pause.failures;
  if (pauses->size() <= kMostAddresses) return;
  pauses->erase(std::min_element(pauses->begin(), pauses->end(),
                                 [](const auto& a, const auto& b) { return a.second.until < b.second.until; }));
}

bool ProbesNewcomers(const ClusterState& state, const JobRun& run) {
  return run.has_run && std::any_of(state.nodes.begin(), state.nodes.end(), [&](const auto& entry) {
           return MayBeUsed(entry.second) && IsTrusted(state, run, entry.first) && !AllLeftOut(run, entry.second);
         });
}

bool JoinIsNear(absl::Duration now, const JobRun& run) {
  return std::any_of(run.probes.begin(), run.probes.end(), [&](const auto& entry) {
    const bool waits = entry.second.stage == ProbeStage::kRefused || entry.second.stage == ProbeStage::kUnreached;
    return !waits && now - entry.second.begun < kNear;
  });
}

std::vector<ProbeAction> DecideProbes(absl::Duration now, const ClusterState& state, const ProbeConfig& config) {
  const JobRun& run = *state.run;
  const View view{now, state, config, run, state.jobs.at(run.job)};
  std::vector<ProbeAction> actions;
  const bool probing = ProbesNewcomers(state, run);
  bool token_asked = false;
  for (const auto& [name, node] : state.nodes) {
    std::optional<ProbeAction> action;
    if (probing) {
      action = DecideNode(view, name, node);
    } else if (MayBeUsed(node) && IsUnreached(run, node)) {
      action = DecideUnreached(view, name, run.probes.at(name));
    } else if (run.probes.contains(name)) {
      action = ForgetProbe{name};  // set-up looks at everybody itself
    }
    if (!action) continue;
    // One token serves all newcomers.
    if (std::holds_alternative<AskToken>(*action) && std::exchange(token_asked, true)) continue;
    actions.push_back(*std::move(action));
  }
  if (!probing || IsTrialUnderWay(view)) return actions;
  if (std::optional<ProbeAction> trial = DecideTrial(view)) actions.push_back(*std::move(trial));
  return actions;
}

}  // namespace motley::coordinator
