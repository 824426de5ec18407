#include "coordinator/members/registry.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/data_way.h"
#include "common/base/status_macros.h"
#include "coordinator/epoch/altered_blame.h"
#include "coordinator/epoch/epoch_driver.h"
#include "coordinator/epoch/leave_out.h"
#include "coordinator/epoch/prober.h"
#include "coordinator/members/clones.h"
#include "coordinator/members/joining.h"
#include "coordinator/members/older_store.h"
#include "coordinator/members/term.h"
#include "coordinator/state/joining.h"
#include "coordinator/state/membership.h"

namespace motley::coordinator {
namespace {

// A worker that comes back may still run ranks of an epoch that went on without it, or that an earlier coordinator began.
// A device that was left out gets another chance with a new worker.
void MeetRuns(Core& core, const NodeDescription& node, bool new_incarnation) {
  for (const auto& [id, job] : core.state.jobs) {
    const auto ran_on = core.state.ran_on.find(id);
    const bool may_run = (core.state.run && core.state.run->job == id) || core.state.aside.contains(id) ||
                         (ran_on != core.state.ran_on.end() && ran_on->second.contains(node.name));
    if (IsFinal(job.phase) || job.epoch.value() == 0 || !may_run) continue;
    core.Send(node.name, StopCommand{id, job.epoch, false, "the session with the coordinator was broken"});
  }
  if (!new_incarnation) {
    if (core.state.run) RemindOfLeftOut(core, node.name);
    return;
  }
  const auto give_chance = [&](JobRun& run) {
    for (const DeviceDescription& device : node.devices) {
      run.left_out.erase(device.id);
      run.deaths.erase(device.id);
    }
    ForgetAltered(run, node);
  };
  if (core.state.run) give_chance(*core.state.run);
  for (auto& [id, run] : core.state.aside) give_chance(run);
}

std::string Summary(const NodeDescription& node) {
  std::map<std::string, int> models;
  for (const DeviceDescription& device : node.devices) ++models[device.model];
  std::vector<std::string> parts;
  for (const auto& [model, count] : models) parts.push_back(absl::StrCat(count, " x ", model));
  return absl::StrFormat("node %s joined with %s", node.name.value(), absl::StrJoin(parts, ", "));
}

constexpr size_t kMostRefused = 64;
constexpr size_t kLongestName = 63;  // of one that may be let in
constexpr size_t kMostWhyBytes = 512;

}  // namespace

EventRecord NodeEvent(const char* kind, const NodeName& node, std::string message) {
  EventRecord event;
  event.kind = kind;
  event.node = node;
  event.message = std::move(message);
  return event;
}

void NoteRefused(Core& core, const std::string& name, const absl::Status& why) {
  auto& refused = core.state.refused_workers;
  const std::string kept = KeptText(name.substr(0, kLongestName), kLongestName);
  refused[kept] = {KeptText(std::string(why.message()), kMostWhyBytes), core.clock.Now()};
  if (refused.size() <= kMostRefused) return;
  refused.erase(
      std::min_element(refused.begin(), refused.end(), [](const auto& a, const auto& b) { return a.second.at < b.second.at; }));
}

absl::Status Admit(Core& core, const NodeDescription& description, std::shared_ptr<WorkerLink> link) {
  // Before anything that a worker would take for a last word.
  MOTLEY_RETURN_IF_ERROR(MeetTerm(core, description));
  MOTLEY_RETURN_IF_ERROR(CheckCaller(core.state, description.name, link->identity()));
  if (absl::Status status = CheckAdmission(core.state, description); !status.ok()) {
    if (absl::IsAlreadyExists(status)) NoteClone(core, description.name, link->peer_address());
    return status;
  }
  // Same incarnation, still connected: the old stream is broken and the worker noticed first.
  if (auto old = core.state.nodes.find(description.name); old != core.state.nodes.end() && old->second.connected) {
    Disconnect(core, description.name, "its connection was replaced by a new one");
    // The loss is acted upon before it is forgotten: what was asked on the old stream is never answered.
    Drive(core);
  }
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<StopCommand> stops, LearnFrom(core, description));
  NodeRecord& node = core.state.nodes[description.name];
  const bool new_incarnation = node.description.incarnation != description.incarnation;
  if (new_incarnation) node.leaves_at.reset();  // a worker that was told to end stays told, through broken sessions
  node.description = description;
  node.clock = ClockOffset();
  core.state.refused_workers.erase(description.name.value());
  node.connected = true;
  node.left = node.forgotten = false;
  node.reason = node.drained ? "drained by the user" : "";
  node.last_seen = node.up_since = core.clock.Now();
  node.registered_unix_ms = node.last_seen_unix_ms = core.journal.UnixMs();
  node.peer_address = link->peer_address();
  node.on_this_machine = node.peer_address.empty() || IsOfThisMachine(node.peer_address);
  core.links[description.name] = std::move(link);
  core.state.membership_changed = core.clock.Now();
  core.Emit(NodeEvent(kind::kNodeJoined, description.name, Summary(description)));
  MeetRuns(core, description, new_incarnation);
  for (const StopCommand& stop : stops) core.Send(description.name, stop);
  if (const std::optional<NodeKey> shown = core.links.at(description.name)->identity(); shown && core.authority) {
    NoteAuthority(core, description.name, core.authority->NumberOf(shown->certificate));
    NoteCoordinators(core, description);
    TellAuthorities(core, description.name);
  }
  UpdateHolds(core);
  return absl::OkStatus();
}

void Disconnect(Core& core, const NodeName& name, const std::string& why) {
  auto it = core.state.nodes.find(name);
  if (it == core.state.nodes.end() || !it->second.connected || core.stopping) return;
  it->second.connected = false;
  it->second.held = false;
  it->second.left = it->second.leaves_at.has_value();
  it->second.reason = it->second.left ? "its worker was told to end" : why;
  if (!it->second.left) it->second.falls.push_back(core.clock.Now());  // one that was told to end did not fall
  core.state.membership_changed = core.clock.Now();
  if (auto link = core.links.extract(name); !link.empty()) link.mapped()->Close(absl::UnavailableError(why));
  EventRecord event =
      it->second.left ? NodeEvent(kind::kNodeLeft, name, absl::StrCat("node ", name.value(), " left: its worker was told to end"))
                      : NodeEvent(kind::kNodeLost, name, absl::StrCat("node ", name.value(), " was lost: ", why));
  for (auto& [id, run] : core.state.aside) run.storage_ok.erase(name);
  if (core.state.run) {
    JobRun& run = *core.state.run;
    run.storage_ok.erase(name);
    // A worker that is told to stop ends its ranks before it goes: before the last step that is a loss, too.
    const JobRecord& job = core.state.jobs.at(run.job);
    const bool unfinished =
        job.step < job.config.training.steps && (run.stage == Stage::kStarting || run.stage == Stage::kRunning);
    const bool involved = std::any_of(run.ranks.begin(), run.ranks.end(),
                                      [&](const RankRun& r) { return NodeOf(r.device) == name && (!r.ended || unfinished); });
    if (involved && run.stage != Stage::kIdle) {
      run.failures.push_back({core.clock.Now(), FailureKind::kNodeLost, name, DeviceId(), why});
      event.job = run.job;
      event.epoch = job.epoch;
    }
  }
  core.Emit(std::move(event));
}

absl::Status SetDrained(Core& core, const NodeName& name, bool drained) {
  auto it = core.state.nodes.find(name);
  if (it == core.state.nodes.end()) {
    std::vector<std::string> known;
    for (const auto& [node, unused] : core.state.nodes) known.push_back(node.value());
    return absl::NotFoundError(absl::StrCat("node '", name.value(), "' is not known; known: ", absl::StrJoin(known, ", ")));
  }
  if (it->second.drained == drained) return absl::OkStatus();
  Batch batch;
  batch.drains.push_back({name, drained});
  batch.events.push_back(
      NodeEvent(drained ? kind::kNodeDrained : kind::kNodeUndrained, name,
                absl::StrCat("node ", name.value(), drained ? " is drained: no plan uses it" : " may be used again")));
  MOTLEY_RETURN_IF_ERROR(core.journal.Commit(batch));
  it->second.drained = drained;
  it->second.reason = drained ? "drained by the user" : "";
  core.state.membership_changed = core.clock.Now();
  return absl::OkStatus();
}

}  // namespace motley::coordinator
