#include "coordinator/epoch/prober.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/logging.h"
#include "common/session/profile.h"
#include "coordinator/epoch/epoch_driver.h"
#include "coordinator/epoch/setup.h"
#include "coordinator/epoch/setup_reach.h"
#include "coordinator/epoch/trial.h"
#include "coordinator/state/initial_weights.h"
#include "coordinator/state/membership.h"
#include "coordinator/state/rank_builds.h"
#include "coordinator/state/setup_reach.h"

namespace motley::coordinator {
namespace {

EventRecord ProbeEvent(const Core& core, const NodeName& node, const char* kind, std::string message) {
  EventRecord event;
  event.job = core.state.run->job;
  event.kind = kind;
  event.node = node;
  event.epoch = core.state.jobs.at(event.job).epoch;
  event.message = std::move(message);
  return event;
}

void Refuse(Core& core, const NodeName& name, Probe& probe, const std::string& why) {
  const ProbeConfig& config = core.config.driver.probe;
  LeaveTrial(core, name);
  probe.stage = ProbeStage::kRefused;
  probe.why = why;
  const absl::Duration pause = PauseAfterRefusals(config, core.state.run->refusals[name]++);
  probe.since = core.clock.Now();
  probe.again_at = core.clock.Now() + pause;
  const std::string text = absl::StrFormat("job %s goes on without node %s: %s; looked at again in %.0f s",
                                           core.state.run->job.value(), name.value(), why, absl::ToDoubleSeconds(pause));
  core.state.nodes.at(name).reason = text;
  core.Emit(ProbeEvent(core, name, kind::kDeviceLeftOut, text));
}

// One action of the decision.
struct ApplyProbe {
  Core& core;
  JobRun& run;
  const JobRecord& job;

  NodeRecord& Node(const NodeName& name) { return core.state.nodes.at(name); }
  void Enter(const NodeName& name, ProbeStage stage) {
    Probe& probe = run.probes.at(name);
    if (probe.stage != stage) probe.since = core.clock.Now();
    probe.stage = stage;
  }

  void operator()(const BeginProbe& action) {
    LeaveTrial(core, action.node);
    Probe& probe = run.probes[action.node] = Probe();
    probe.incarnation = Node(action.node).description.incarnation;
    probe.id = absl::StrCat("probe-", job.id.value(), "-", ++run.probes_begun, "-", core.journal.UnixMs());
    probe.begun = probe.since = core.clock.Now();
    Node(action.node).reason = absl::StrCat("looked at beside job ", job.id.value(), " before it takes part");
    LogInfo(absl::StrCat("node ", action.node.value(), " is looked at beside job ", job.id.value()));
  }
  void operator()(const AskToken& action) {
    run.probe_token = {absl::StrCat("probe-token-", job.id.value(), "-", core.journal.UnixMs()), action.writer,
                       Node(action.writer).description.incarnation, false, ""};
    // No data path: the writer is training and need not read its data again.
    Ask(action.writer, {job.id, job.epoch, "", CheckpointFolder(job), run.probe_token.token, true, run.probe_token.token});
  }
  void operator()(const AskStorage& action) {
    Probe& probe = run.probes.at(action.node);
    probe.storage_asked = true;
    Ask(action.node, {job.id, job.epoch, job.config.data.path, CheckpointFolder(job),
                      job.config.checkpoint.folder.empty() ? "" : run.probe_token.token, false, probe.id, InitialFolder(job)});
  }
  void Ask(const NodeName& node, StorageCheckCommand check) {
    check.job_uid = job.uid;
    if (!check.data_path.empty()) check.validation_path = job.config.data.validation_path;
    core.Send(node, std::move(check));
  }
  void operator()(const AskReach& action) {
    Enter(action.node, ProbeStage::kReach);
    Probe& probe = run.probes.at(action.node);
    const NodeDescription& newcomer = Node(action.node).description;
    ReachCheckCommand to_peers{probe.id, {}};
    const ReachCheckCommand from_peers{probe.id, {{newcomer.name, newcomer.data_address, newcomer.reach_port}}};
    for (const auto& [name, peer] : core.state.nodes) {
      if (!peer.connected || peer.drained || name == action.node || !IsTrusted(core.state, run, name)) continue;
      if (peer.description.reach_port != 0) {
        to_peers.targets.push_back({name, peer.description.data_address, peer.description.reach_port});
      }
      if (newcomer.reach_port == 0) continue;
      probe.unanswered.insert(name);
      core.Send(name, from_peers);
    }
    if (to_peers.targets.empty()) return;
    probe.unanswered.insert(action.node);
    core.Send(action.node, std::move(to_peers));
  }
  void operator()(const AskProfile& action) {
    Enter(action.node, ProbeStage::kProfile);
    Probe& probe = run.probes.at(action.node);
    absl::StatusOr<ProfileCommand> command = ProbeProfile(core, action.node, probe.id);
    if (!command.ok()) return Refuse(core, action.node, probe, std::string(command.status().message()));
    probe.to_measure = command->compute_devices;
    if (command->compute_devices.empty()) return Enter(action.node, ProbeStage::kPlan);
    core.Send(action.node, *std::move(command));
  }
  void operator()(const AwaitPlan& action) { Enter(action.node, ProbeStage::kPlan); }
  void operator()(const TryPlan& action) { BeginTrial(core, action.nodes); }
  void operator()(const PassProbe& action) {
    NodeRecord& node = Node(action.node);
    Probe& probe = run.probes.at(action.node);
    if (probe.profile) {
      if (absl::Status stored = StoreProfiles(core, action.node, node.description.devices, *probe.profile); !stored.ok()) {
        return Refuse(core, action.node, probe, std::string(stored.message()));
      }
    }
    run.storage_ok[action.node] = node.description.incarnation;
    core.Emit(ProbeEvent(core, action.node, kind::kProbePassed,
                         absl::StrFormat("node %s passed its checks beside the job in %.1f s and may take part",
                                         action.node.value(), absl::ToDoubleSeconds(core.clock.Now() - probe.begun))));
    node.reason.clear();
    run.probes.erase(action.node);
    core.state.membership_changed = core.clock.Now();
  }
  void operator()(const RefuseProbe& action) {
    Probe& probe = run.probes.at(action.node);
    const bool measuring = probe.stage == ProbeStage::kProfile;
    Refuse(core, action.node, probe, action.why);
    if (measuring) core.Send(action.node, StopCommand{job.id, job.epoch, false, "its profile is not waited for any more"});
  }
  void operator()(const HoldOff& action) {
    LeaveTrial(core, action.node);
    Probe& probe = run.probes[action.node];
    const bool measuring = probe.stage == ProbeStage::kProfile;
    probe = Probe();
    probe.incarnation = Node(action.node).description.incarnation;
    probe.stage = ProbeStage::kRefused;
    probe.why = action.why;
    probe.begun = probe.since = core.clock.Now();
    probe.again_at = action.until;
    Node(action.node).reason =
        absl::StrFormat("job %s goes on without node %s: %s; looked at in %.0f s", job.id.value(), action.node.value(),
                        action.why, absl::ToDoubleSeconds(action.until - core.clock.Now()));
    LogInfo(Node(action.node).reason);
    if (measuring) core.Send(action.node, StopCommand{job.id, job.epoch, false, action.why});
  }
  void operator()(const TryReachAgain& action) { TryReach(core, action.node); }
  void operator()(const StillUnreached& action) {
    Probe& probe = run.probes.at(action.node);
    probe.trying_again = false;
    probe.why = action.why;
    probe.again_at = core.clock.Now() + core.config.driver.probe.reach_pause;
  }
  void operator()(const ReachedAgain& action) {
    core.Emit(ProbeEvent(core, action.node, kind::kProbePassed,
                         absl::StrCat("node ", action.node.value(), " is reached now and may take part")));
    Node(action.node).reason.clear();
    run.probes.erase(action.node);
    core.state.membership_changed = core.clock.Now();
  }
  void operator()(const ForgetProbe& action) {
    LeaveTrial(core, action.node);
    auto node = core.state.nodes.find(action.node);
    if (node != core.state.nodes.end() && node->second.connected && !node->second.drained && !node->second.held) {
      node->second.reason.clear();
    }
    run.probes.erase(action.node);
  }
};

Probe* FindProbe(Core& core, const std::string& id) {
  if (!core.state.run) return nullptr;
  for (auto& [name, probe] : core.state.run->probes) {
    if (probe.id == id) return &probe;
  }
  return nullptr;
}

Probe* FindProbeOf(Core& core, const NodeName& node, const std::string& id) {
  if (!core.state.run) return nullptr;
  auto found = core.state.run->probes.find(node);
  return found == core.state.run->probes.end() || found->second.id != id ? nullptr : &found->second;
}

// The job moves over to the nodes of another build when most have it.
void ChooseBuild(Core& core, const std::set<NodeName>& flapping) {
  const std::optional<std::string> build = BuildOfMost(core.state, flapping);
  const std::optional<std::string> before = std::exchange(core.state.rank_build, build);
  // After a restart nodes come one by one, and nothing begins until they have.
  const bool settled = !core.state.run || core.clock.Now() >= core.state.run->not_before;
  if (!before || build == before || !settled) return;
  EventRecord event;
  event.kind = kind::kRankBuildChanged;
  event.message = absl::StrCat("ranks of build ", *build, " train from now on, as most nodes have it; those of ",
                               before->empty() ? "an unknown build" : *before, " wait");
  core.Emit(std::move(event));
}

}  // namespace

void UpdateHolds(Core& core) {
  const FlappingConfig& config = core.config.driver.flapping;
  const absl::Duration now = core.clock.Now();
  std::set<NodeName> flapping;
  for (auto& [name, node] : core.state.nodes) {
    ForgetOldFalls(now, config, &node.falls);
    if (node.connected && DecideHold(now, core.state, node, config).held) flapping.insert(name);
  }
  ChooseBuild(core, flapping);
  for (auto& [name, node] : core.state.nodes) {
    if (!node.connected || node.drained) continue;
    HoldDecision hold = DecideHoldOfBuild(core.state, node);
    if (!hold.held) hold = DecideHold(now, core.state, node, config);
    if (hold.held || node.held) node.reason = hold.reason;
    if (hold.held != node.held) {
      core.state.membership_changed = now;
      LogInfo(absl::StrCat("node ", name.value(), hold.held ? absl::StrCat(": ", hold.reason) : " may be used again"));
    }
    node.held = hold.held;
  }
}

void ProbeNewcomers(Core& core) {
  if (core.stopping) return;
  UpdateHolds(core);
  if (!core.state.run) return;
  for (const ProbeAction& action : DecideProbes(core.clock.Now(), core.state, core.config.driver.probe)) {
    std::visit(ApplyProbe{core, *core.state.run, core.state.jobs.at(core.state.run->job)}, action);
  }
}

void OnProbeStorage(Core& core, const NodeName& node, const StorageReport& report) {
  if (!core.state.run) return;
  ProbeToken& token = core.state.run->probe_token;
  if (node == token.writer && report.check_id == token.token) {
    token.written = report.error.empty();
    token.error = report.error;
  } else if (Probe* probe = FindProbeOf(core, node, report.check_id); probe != nullptr && probe->storage_asked) {
    probe->storage = report;
  }
  ProbeNewcomers(core);
}

void OnProbeReach(Core& core, const NodeName& node, const ReachReport& report) {
  Probe* probe = FindProbe(core, report.check_id);
  if (probe == nullptr || probe->unanswered.erase(node) == 0) return;
  for (const ReachAnswer& answer : report.answers) {
    if (answer.error.empty() || !probe->unreachable.empty()) continue;
    if (probe->stage == ProbeStage::kUnreached) {
      if (core.state.nodes.contains(answer.node)) probe->unreachable = BrokenWay(core.state, {node, answer.node}, answer.error);
      continue;
    }
    probe->unreachable =
        absl::StrCat("node ", node.value(), " does not reach node ", answer.node.value(),
                     " over the data addresses: ", answer.error, "; look at worker.data_address and the firewall of both");
  }
  ProbeNewcomers(core);
}

void OnProbeProfile(Core& core, const NodeName& node, const ProfileReport& report) {
  Probe* probe = FindProbeOf(core, node, report.check_id);
  if (probe == nullptr || probe->stage != ProbeStage::kProfile) return;
  probe->profile = report;
  ProbeNewcomers(core);
}

void MarkProven(Core& core) {
  JobRun& run = *core.state.run;
  const bool trained = run.stage == Stage::kStarting || run.stage == Stage::kRunning;
  if (!trained || run.epoch_steps == 0) return;
  for (const RankRun& rank : run.ranks) {
    run.proven[NodeOf(rank.device)] = rank.incarnation;
    run.refusals.erase(NodeOf(rank.device));
  }
}

void RefuseSwapped(Core& core, const std::set<NodeName>& newcomers, const std::string& why) {
  JobRun& run = *core.state.run;
  const ProbeConfig& config = core.config.driver.probe;
  std::set<std::string> addresses;
  for (const NodeName& name : newcomers) {
    const NodeRecord& node = core.state.nodes.at(name);
    run.storage_ok.erase(name);
    if (IsCountedByAddress(core.state, run, node)) addresses.insert(node.peer_address);
    if (!node.connected || node.leaves_at) continue;  // why is said, and it is not used
    Probe& probe = run.probes[name];
    probe.incarnation = node.description.incarnation;
    Refuse(core, name, probe, absl::StrCat("the generation that it joined ended before its first step: ", why));
  }
  const bool has_stepped = run.last_step_at != absl::ZeroDuration();
  const absl::Duration cost = has_stepped ? core.clock.Now() - run.last_step_at : absl::ZeroDuration();
  for (const std::string& address : addresses) CountFailedSwap(core.clock.Now(), config, address, cost, &run.address_pauses);
  // Those that came from there and passed meanwhile wait as well.
  for (const auto& [name, node] : core.state.nodes) {
    if (addresses.contains(node.peer_address)) run.storage_ok.erase(name);
  }
}

void ResetTokens(Core& core) {
  JobRun& run = *core.state.run;
  run.probe_token = ProbeToken();
  std::erase_if(run.probes, [](const auto& entry) { return entry.second.stage == ProbeStage::kStorage; });
}

}  // namespace motley::coordinator
