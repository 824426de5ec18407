#include "coordinator/epoch/setup_reach.h"

#include <random>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "coordinator/state/examination.h"
#include "coordinator/state/membership.h"
#include "coordinator/state/setup_reach.h"

namespace motley::coordinator {
namespace {

constexpr char kSetup[] = "setup-";

ReachTarget ReachTargetOf(const NodeRecord& node) {
  return {node.description.name, node.description.data_address, node.description.reach_port};
}

// Nodes take bursts of one secret at a time: an examination that is under way keeps its own.
std::string SecretOfReach(const Core& core) {
  if (core.examination) return core.examination->secret;
  std::random_device random;
  std::string secret;
  for (int word = 0; word < 4; ++word) absl::StrAppend(&secret, absl::StrFormat("%08x", random()));
  return secret;
}

// Of a job that trained: a network that is only disturbed for a moment costs nobody its place.
bool LostEachOtherAgain(const JobRun& run) { return run.trouble.remedy == Remedy::kReplan && run.trouble.times >= 2; }

}  // namespace

void AskSetupReach(Core& core, const std::set<NodeName>& nodes) {
  JobRun& run = *core.state.run;
  run.reach = SetupReach();
  if (nodes.size() < 2 || (ProbesNewcomers(core.state, run) && !LostEachOtherAgain(run))) return;
  const JobRecord& job = core.state.jobs.at(run.job);
  run.reach.id = absl::StrCat(kSetup, job.id.value(), "-", job.epoch.value(), "-", core.journal.UnixMs());
  std::vector<NodeName> listening;
  for (const NodeName& name : nodes) {
    if (core.state.nodes.at(name).description.reach_port != 0) listening.push_back(name);
  }
  const std::string secret = SecretOfReach(core);
  for (const NodeName& name : nodes) {
    ReachCheckCommand check{run.reach.id, {}, secret};
    check.large = nodes.size() <= kMostForAllRates;
    for (const NodeName& other : Following(listening, name, kMostTargets)) {
      check.targets.push_back(ReachTargetOf(core.state.nodes.at(other)));
    }
    if (check.targets.empty()) continue;
    run.reach.unanswered.insert(name);
    core.Send(name, std::move(check));
  }
}

bool IsOfSetup(const std::string& check_id) { return absl::StartsWith(check_id, kSetup); }

void OnSetupReach(Core& core, const NodeName& node, const ReachReport& report) {
  if (!core.state.run) return;
  JobRun& run = *core.state.run;
  if (run.stage != Stage::kStorage || report.check_id != run.reach.id || run.reach.unanswered.erase(node) == 0) return;
  for (const ReachAnswer& answer : report.answers) {
    const bool asked = answer.node != node && core.state.nodes.contains(answer.node);
    if (asked && !answer.error.empty()) run.reach.broken[{node, answer.node}] = answer.error;
  }
}

void LeaveOutOfReach(Core& core, const NodeName& name, const std::string& why) {
  JobRun& run = *core.state.run;
  NodeRecord& node = core.state.nodes.at(name);
  run.storage_ok.erase(name);
  Probe& probe = run.probes[name] = Probe();
  probe.incarnation = node.description.incarnation;
  probe.stage = ProbeStage::kUnreached;
  probe.why = why;
  probe.begun = probe.since = core.clock.Now();
  probe.again_at = core.clock.Now() + core.config.driver.probe.reach_pause;
  node.reason = absl::StrFormat("job %s goes on without node %s: %s; tried again every %.0f s", run.job.value(), name.value(),
                                why, absl::ToDoubleSeconds(core.config.driver.probe.reach_pause));
  EventRecord event;
  event.job = run.job;
  event.kind = kind::kDeviceLeftOut;
  event.node = name;
  event.epoch = core.state.jobs.at(run.job).epoch;
  event.message = node.reason;
  core.Emit(std::move(event));
}

void TryReach(Core& core, const NodeName& name) {
  JobRun& run = *core.state.run;
  Probe& probe = run.probes.at(name);
  const NodeRecord& node = core.state.nodes.at(name);
  probe.id = absl::StrCat("probe-", run.job.value(), "-", ++run.probes_begun, "-", core.journal.UnixMs());
  probe.trying_again = true;
  probe.since = core.clock.Now();
  probe.unanswered.clear();
  probe.unreachable.clear();
  ReachCheckCommand there{probe.id, {}, SecretOfReach(core)}, back{probe.id, {ReachTargetOf(node)}, there.secret};
  std::set<NodeName> peers;
  for (const DeviceDescription& device : UsableDevices(core.state, run)) peers.insert(NodeOf(device.id));
  there.large = back.large = peers.size() <= kMostForAllRates;
  for (const NodeName& peer : peers) {
    if (core.state.nodes.at(peer).description.reach_port != 0) there.targets.push_back(ReachTargetOf(core.state.nodes.at(peer)));
    if (node.description.reach_port == 0) continue;
    probe.unanswered.insert(peer);
    core.Send(peer, back);
  }
  if (there.targets.empty()) return;
  probe.unanswered.insert(name);
  core.Send(name, std::move(there));
}

}  // namespace motley::coordinator
