#include "coordinator/epoch/epoch_driver.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/logging.h"
#include "coordinator/epoch/ending.h"
#include "coordinator/epoch/leave_out.h"
#include "coordinator/epoch/looks.h"
#include "coordinator/epoch/planning.h"
#include "coordinator/epoch/prober.h"
#include "coordinator/epoch/run_begin.h"
#include "coordinator/epoch/second_opinion.h"
#include "coordinator/epoch/setup.h"
#include "coordinator/epoch/setup_reach.h"
#include "coordinator/epoch/starting.h"
#include "coordinator/state/decide.h"
#include "coordinator/state/lending.h"
#include "coordinator/state/membership.h"
#include "coordinator/state/queue.h"

namespace motley::coordinator {
namespace {

// Each action leads to another stage, so a longer chain is a bug; it must not take the loop away from everybody else.
constexpr int kMaxActionsPerTurn = 20;

// What an action does to the core; the reason is the decision's.
struct Apply {
  Core& core;
  JobRun& run;
  JobRecord& job;
  const std::string& reason;

  // From a set-up or a plan, of which nothing runs.
  void GoIdle() {
    run.stage = Stage::kIdle;
    run.stage_since = core.clock.Now();
    run.prepared.reset();
    run.looking = false;
  }

  // Newcomers that were refused before are looked at once more (state/probe).
  void NoteWithoutPlan() {
    std::vector<DeviceId> proven = Ids(run.considered);
    if (proven != run.proven_without_plan) run.without_plan_since = core.clock.Now();
    run.proven_without_plan = std::move(proven);
  }

  absl::Status operator()(const KeepOn&) {
    if (run.looking && core.clock.Now() - run.stage_since > core.config.driver.look_patience) PardonPlanning(core);
    if (!reason.empty()) core.SetReason(job, reason);
    return absl::OkStatus();
  }
  absl::Status operator()(const Wait&) {
    run.stage = Stage::kIdle;
    if (run.prepared) {  // no plan fits: another set of devices may
      run.infeasible = run.considered;
      run.infeasible_reason = reason;
      run.infeasible_borrowed = Borrows(core.state, run);
      if (UnprovenNodes(core.state, run).empty()) NoteWithoutPlan();
      run.prepared.reset();
    }
    return core.SetPhase(job, JobPhase::kWaiting, reason);
  }
  absl::Status operator()(const Yield&) { return YieldCluster(core, reason); }
  absl::Status operator()(const BeginSetup& action) {
    run.tried = true;
    return BeginStorageChecks(core, action.devices, reason);
  }
  absl::Status operator()(const AbandonSetup&) {
    GoIdle();
    core.SetReason(job, reason);
    return absl::OkStatus();
  }
  absl::Status operator()(const LeaveOutNodes& action) {
    for (const auto& [node, why] : action.nodes) {
      LeaveOut(core, node, why);
      core.Send(node, StopCommand{job.id, job.epoch, false, why});  // no rank's start or end tells it to remove its token
    }
    return absl::OkStatus();
  }
  absl::Status operator()(const LeaveOutDevices& action) {
    for (const DeviceId& device : action.devices) {
      LeaveOutDevice(core, device, absl::StrCat("there is a plan without it, and none with it: ", reason));
    }
    return absl::OkStatus();
  }
  absl::Status operator()(const LeaveOutUnreached& action) {
    for (const auto& [node, why] : action.nodes) LeaveOutOfReach(core, node, why);
    core.SetReason(job, reason);
    return absl::OkStatus();
  }
  absl::Status operator()(const AskSecondReader& action) {
    AskReader(core, action.node, reason);
    return absl::OkStatus();
  }
  absl::Status operator()(const JudgeCheckpoint& action) {
    Judge(core, action.verdict, reason);
    return absl::OkStatus();
  }
  absl::Status operator()(const RefuseNewcomers&) {
    RefuseSwapped(core, UnprovenNodes(core.state, run), reason);
    GoIdle();
    return absl::OkStatus();
  }
  absl::Status operator()(const RequestProfiles&) { return BeginProfiling(core); }
  absl::Status operator()(const PredictCollectives&) { return GoOnPredicted(core, reason); }
  absl::Status operator()(const PreparePlan&) { return BeginPlanning(core); }
  absl::Status operator()(const RetryLater& action) {
    Postpone(core, reason, action.folder);
    return absl::OkStatus();
  }
  absl::Status operator()(const StartRanks&) { return StartEpoch(core, reason); }
  absl::Status operator()(const MarkRunning&) {
    run.stage = Stage::kRunning;
    run.stage_since = core.clock.Now();
    return core.SetPhase(job, JobPhase::kRunning, reason);
  }
  absl::Status operator()(const EndEpoch& action) { return BeginEnding(core, action, reason); }
  absl::Status operator()(const KillEpoch& action) { return KillRanks(core, action, reason); }
  absl::Status operator()(const EpochEnded&) { return FinishEnding(core); }
  absl::Status operator()(const Finish& action) { return FinishJob(core, action.phase, reason, action.error_code); }
};

void DriveQueue(Core& core) {
  const QueueDecision decision = DecideQueue(core.state);
  for (const JobId& id : decision.stopped) {
    const bool began = core.state.jobs.at(id).epoch > Epoch();
    JobRecord next = WithPhase(core.state.jobs.at(id), JobPhase::kStopped,
                               began ? "stopped by the user" : "stopped by the user before it began");
    next.finished_unix_ms = core.journal.UnixMs();
    Batch batch;
    batch.events.push_back(PhaseEvent(core.state.jobs.at(id), next));
    batch.jobs.push_back(std::move(next));
    if (!core.journal.Commit(batch).ok()) continue;
    core.state.jobs.at(id) = batch.jobs[0];
    core.state.aside.erase(id);
  }
  for (const auto& [id, reason] : decision.waiting) core.SetReason(core.state.jobs.at(id), reason);
  if (decision.activate) BeginRun(core, *decision.activate);
}

// Whoever waits for devices is asked whether they are back.
void AskLenders(Core& core) {
  Claims claims = DecideClaims(core.clock.Now(), core.state, core.config.driver);
  core.state.claimant = std::move(claims.claimant);
  for (auto& [id, why] : claims.unable) {
    Aside& aside = core.state.aside.at(id).aside;
    aside.membership = core.state.membership_changed;
    aside.why = std::move(why);
    aside.of_folder = !core.state.aside.at(id).folder.why.empty();
  }
}

// The job that waits lends the cluster. False: it keeps it.
bool Lend(Core& core, const std::string& reason) {
  const std::optional<JobId> borrower = ChooseBorrower(core.clock.Now(), core.state, core.config.driver);
  if (!borrower) return false;
  JobRecord& job = core.state.jobs.at(core.state.run->job);
  if (!core.SetPhase(job, JobPhase::kWaiting, reason).ok()) return false;
  PutAside(core);
  BeginRun(core, *borrower);
  LogInfo(absl::StrCat("job ", borrower->value(), " has the cluster until the devices of others are back"));
  return true;
}

}  // namespace

void Drive(Core& core) {
  if (core.stopping) return;
  AskLenders(core);
  DriveQueue(core);
  for (int i = 0; core.state.run && i < kMaxActionsPerTurn; ++i) {
    JobRun& run = *core.state.run;
    JobRecord& job = core.state.jobs.at(run.job);
    NoteWhereItLooks(core);
    const Decision decision = Decide(core.clock.Now(), core.state, core.config.driver);
    const auto* wait = std::get_if<Wait>(&decision.action);
    const auto* keep = std::get_if<KeepOn>(&decision.action);
    const bool lends = wait != nullptr ? wait->lends : keep != nullptr && keep->lends;
    if (!lends) run.lends_since.reset();
    if (lends && !run.lends_since) run.lends_since = core.clock.Now();
    if (absl::Status status = std::visit(Apply{core, run, job, decision.reason}, decision.action); !status.ok()) {
      // The store refused (a full disk, mostly). Nothing was sent; the next turn tries again.
      core.SetReason(job, absl::StrCat("cannot go on: ", std::string(status.message())));
      return;
    }
    if (lends && Lend(core, decision.reason)) continue;
    if (keep != nullptr) return;
    if (wait != nullptr) break;
  }
  if (!core.state.run) DriveQueue(core);
}

}  // namespace motley::coordinator
