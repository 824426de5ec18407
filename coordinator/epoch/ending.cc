#include "coordinator/epoch/ending.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/count.h"
#include "common/base/status_macros.h"
#include "coordinator/epoch/altered_blame.h"
#include "coordinator/epoch/leave_out.h"
#include "coordinator/epoch/prober.h"
#include "coordinator/epoch/second_opinion.h"
#include "coordinator/epoch/setup.h"
#include "coordinator/epoch/steps.h"
#include "coordinator/epoch/storage_blame.h"
#include "coordinator/state/membership.h"

namespace motley::coordinator {
namespace {

void SendStop(Core& core, bool save, const std::string& reason) {
  const JobRun& run = *core.state.run;
  const Epoch epoch = core.state.jobs.at(run.job).epoch;
  std::set<NodeName> nodes;
  for (const RankRun& rank : run.ranks) {
    if (!IsGone(core.state, rank)) nodes.insert(NodeOf(rank.device));
  }
  for (const NodeName& node : nodes) core.Send(node, StopCommand{run.job, epoch, save, reason});
}

// The event of the failure itself (a lost node has its own already), and the device's record of deaths.
// `blamed`: newcomers that it is blamed on, if any: then it says nothing of others.
void RecordFailure(Core& core, const Failure& failure, std::vector<EventRecord>* events, const std::set<NodeName>& blamed = {}) {
  JobRun& run = *core.state.run;
  EventRecord event;
  event.job = run.job;
  event.node = failure.device.empty() ? failure.node : NodeOf(failure.device);
  event.device = failure.device;
  event.epoch = core.state.jobs.at(run.job).epoch;
  // All ranks find the step's sums not finite; the message says on which one it began.
  if (failure.kind == FailureKind::kNonFinite) event.node = NodeName(), event.device = DeviceId();
  if (failure.kind != FailureKind::kNodeLost) {
    event.kind = failure.kind == FailureKind::kHung                                             ? kind::kRankHung
                 : failure.kind == FailureKind::kDied || failure.kind == FailureKind::kPeerLost ? kind::kRankLost
                                                                                                : kind::kRankFailed;
    event.message = Describe(failure);
    events->push_back(event);
  }
  const Remedy remedy = RemedyFor(failure);
  // A newcomer's word ends nothing: it is refused.
  const bool believed = BlamedNewcomers(core.state, run, failure).empty();
  if (remedy == Remedy::kSecondReader && believed) Suspect(core, failure);
  if (remedy == Remedy::kWaitForStorage && believed) SuspectUnread(core);
  if (remedy == Remedy::kWithoutNode && believed && !EndsJob(core.state, run, failure)) {
    run.odd_nodes.insert(event.node);
    run.storage_in_doubt = true;  // others may hold the same other data, and would say so one by one
    LeaveOut(core, event.node, Describe(failure));
  }
  if (remedy != Remedy::kRestart || !(blamed.empty() || blamed.contains(event.node))) return;
  if (++run.deaths[failure.device] < core.config.driver.max_deaths) return;
  LeaveOutDevice(core, failure.device,
                 absl::StrCat("its rank died ", Count(run.deaths[failure.device], "time"), " in a row",
                              failure.message.empty() ? "" : absl::StrCat(", the last time: ", failure.message)));
}

// The epoch ended otherwise than as it was planned. Failures count in a row while no step is made between them.
void NoteTrouble(JobRun& run, Remedy remedy, const std::string& reason) {
  const bool barren = run.epoch_steps == 0;
  if (!barren) run.trouble = {};
  run.trouble.remedy = remedy;
  run.trouble.reason = reason;
  run.trouble.waited = false;
  // Files are waited for although the epoch made steps: its last checkpoint could not be written.
  if (barren || remedy == Remedy::kWaitForStorage) ++run.trouble.times;
  if (barren && remedy == Remedy::kRestart) ++run.trouble.deaths;
}

// A stop that did not save as it should have must not look like one that did.
std::string WhyStopped(const JobRun& run) {
  if (run.save_failed) return run.ending_reason;
  if (run.saving && run.failures.empty() && !run.checkpoint_trouble.empty()) {
    return absl::StrCat("stopped by the user; ", run.checkpoint_trouble);
  }
  if (!run.saving || run.failures.empty()) return "stopped by the user";
  return absl::StrCat("stopped by the user; while saving ", Describe(run.failures.front()));
}

// What their ranks still print may come into the job's log.
void RememberNodes(ClusterState& state) {
  for (const RankRun& rank : state.run->ranks) state.ran_on[state.run->job].insert(NodeOf(rank.device));
}

}  // namespace

absl::Status BeginEnding(Core& core, const EndEpoch& action, const std::string& reason) {
  JobRun& run = *core.state.run;
  MarkProven(core);
  JobRecord& job = core.state.jobs.at(run.job);
  const JobPhase phase = action.ending == Ending::kReplan ? JobPhase::kReplanning : job.phase;
  Batch batch;
  batch.jobs.push_back(WithPhase(job, phase, reason));
  if (phase != job.phase) batch.events.push_back(PhaseEvent(job, batch.jobs[0]));
  // A coordinator that ends lets its ranks save, whatever the state's disk says: what a later one reads is what a crash leaves.
  const absl::Status written = core.journal.Commit(batch);
  if (!written.ok() && !core.state.stops_at) return written;
  job = batch.jobs[0];

  if (action.failure) {
    Batch failure;
    RecordFailure(core, *action.failure, &failure.events, action.blamed);
    for (EventRecord& event : failure.events) core.Emit(std::move(event));
    BlameForRestore(core, *action.failure);
    if (action.blamed.empty()) BlameForAltered(core, *action.failure);
  }
  RefuseSwapped(core, action.blamed, reason);
  const bool planned = action.save || action.cause_label.empty();
  if (action.ending == Ending::kReplan && !planned && action.blamed.empty()) {
    NoteTrouble(run, action.failure ? RemedyFor(*action.failure) : Remedy::kReplan, reason);
  }
  run.saving = action.save;
  run.save_failed = false;
  run.ending = action.ending;
  run.ending_reason = reason;
  // Several replans without a step between them are one pause, told by its first cause.
  const bool trained = run.stage == Stage::kStarting || run.stage == Stage::kRunning;
  if (action.ending == Ending::kReplan && trained && run.replan_cause.empty() && run.has_run) {
    run.replan_cause = reason;
    run.cause_label = action.cause_label;
    run.step_before_replan = job.step;
  }
  run.stage = Stage::kStopping;
  run.stage_since = core.clock.Now();
  SendStop(core, action.save, reason);
  return absl::OkStatus();
}

absl::Status KillRanks(Core& core, const KillEpoch& action, const std::string& reason) {
  JobRun& run = *core.state.run;
  run.saving = false;
  run.save_failed = true;
  run.stage_since = core.clock.Now();
  run.ending_reason = reason;
  if (action.failure) {
    std::vector<EventRecord> events;
    RecordFailure(core, *action.failure, &events);
    for (EventRecord& event : events) core.Emit(std::move(event));
    const Remedy remedy = RemedyFor(*action.failure);
    NoteTrouble(run, remedy, reason);
    if (EndsJob(core.state, run, *action.failure)) run.ending = Ending::kFail;
  }
  core.SetReason(core.state.jobs.at(run.job), reason);
  SendStop(core, false, reason);
  return absl::OkStatus();
}

absl::Status FinishEnding(Core& core) {
  JobRun& run = *core.state.run;
  const JobRecord& job = core.state.jobs.at(run.job);
  // All steps were done while it was told to save: there is nothing left to replan or to stop.
  if (run.saving && job.step >= job.config.training.steps) {
    return FinishJob(core, JobPhase::kSucceeded, AllStepsDone(job));
  }
  if (run.ending == Ending::kFail) return FinishJob(core, JobPhase::kFailed, run.ending_reason);
  if (run.ending == Ending::kStop) return FinishJob(core, JobPhase::kStopped, WhyStopped(run));
  RememberNodes(core.state);
  run.ranks.clear();
  run.ranks_in_order = false;
  run.epoch_steps = 0;
  run.checkpoint_trouble.clear();
  run.failures.clear();
  run.profiling.clear();
  run.kv.clear();
  run.kv_bytes = 0;
  run.kv_waiters.clear();
  run.stage = Stage::kIdle;
  run.stage_since = core.clock.Now();
  return absl::OkStatus();
}

absl::Status WithdrawStop(Core& core, JobRecord& job) {
  const bool stops = core.state.run && core.state.run->job == job.id && core.state.run->stage == Stage::kStopping &&
                     core.state.run->ending == Ending::kStop;
  const std::string reason = "resumed by the user before it had stopped: goes on when its ranks have ended";
  Batch batch;
  batch.jobs.push_back(stops ? WithPhase(job, JobPhase::kReplanning, reason) : job);
  batch.jobs[0].stop_requested = false;
  if (stops) batch.events.push_back(PhaseEvent(job, batch.jobs[0]));
  MOTLEY_RETURN_IF_ERROR(core.journal.Commit(batch));
  job = batch.jobs[0];
  if (!stops) return absl::OkStatus();
  JobRun& run = *core.state.run;
  run.ending = Ending::kReplan;
  run.ending_reason = reason;
  if (run.has_run && run.replan_cause.empty()) {
    run.replan_cause = "stopped and resumed by the user";
    run.cause_label = "resumed";
    run.step_before_replan = job.step;
  }
  return absl::OkStatus();
}

void Postpone(Core& core, const std::string& reason, bool for_folder) {
  JobRun& run = *core.state.run;
  run.stage = Stage::kIdle;
  run.stage_since = core.clock.Now();
  run.prepared.reset();
  run.looking = false;
  NoteTrouble(run, Remedy::kWaitForStorage, reason);
  if (for_folder) run.folder.why = reason, run.folder.looked = core.clock.Now();
  core.SetReason(core.state.jobs.at(run.job), reason);
}

void LeaveCluster(Core& core, const std::string& reason) {
  const JobRun& run = *core.state.run;
  const JobRecord& job = core.state.jobs.at(run.job);
  // Set-up has no ranks, whose start or end would tell a worker to remove what it wrote to compare the folders.
  if (run.stage == Stage::kIdle || run.stage == Stage::kStorage || run.stage == Stage::kPlanning) {
    for (const auto& [node, answer] : run.storage) {
      if (answer.asked) core.Send(node, StopCommand{run.job, job.epoch, false, reason});
    }
  }
  RememberNodes(core.state);
  for (const auto& [name, probe] : run.probes) {
    core.Send(name, StopCommand{run.job, job.epoch, false, reason});
  }
  for (auto& [name, node] : core.state.nodes) {
    const std::vector<DeviceDescription>& devices = node.description.devices;
    const bool any_left_out = std::any_of(devices.begin(), devices.end(),
                                          [&](const DeviceDescription& device) { return run.left_out.contains(device.id); });
    const std::string is = NodeStateName(core.state, node);
    if (is == "refused" || (any_left_out && is == "ready")) node.reason.clear();
  }
  if (run.suspicion && !run.suspicion->reader.empty()) {
    core.Send(run.suspicion->reader, StopCommand{run.job, job.epoch, false, reason});
  }
  WatchRanks(core, {});
  // What alerts watch must not stand still for ever; the rest stays for the dashboards.
  Metrics& m = core.metrics;
  for (GaugeFamily* family : {&m.steps_target, &m.prediction_error_ratio, &m.last_checkpoint_timestamp}) {
    family->Remove({{"job_id", job.id.value()}});
  }
}

namespace {

// The job as it is from now on, on disk first; it has the cluster no more.
absl::Status EndRun(Core& core, JobRecord next) {
  JobRecord& job = core.state.jobs.at(core.state.run->job);
  const std::string reason = next.reason;  // a commit keeps a cleaned one
  Batch batch;
  batch.events.push_back(PhaseEvent(job, next));
  batch.jobs.push_back(std::move(next));
  MOTLEY_RETURN_IF_ERROR(core.journal.Commit(batch));
  job = batch.jobs[0];
  LeaveCluster(core, reason);
  core.state.run.reset();
  return absl::OkStatus();
}

}  // namespace

absl::Status YieldCluster(Core& core, const std::string& reason) {
  return EndRun(core, WithPhase(core.state.jobs.at(core.state.run->job), JobPhase::kQueued, reason));
}

absl::Status FinishJob(Core& core, JobPhase phase, const std::string& reason, absl::StatusCode error_code) {
  JobRecord next = WithPhase(core.state.jobs.at(core.state.run->job), phase, reason);
  next.finished_unix_ms = core.journal.UnixMs();
  next.error_code = error_code;
  return EndRun(core, std::move(next));
}

}  // namespace motley::coordinator
