#include "coordinator/members/recovery.h"

#include "absl/strings/str_cat.h"
#include "common/base/count.h"
#include "common/base/status_macros.h"
#include "common/base/version.h"
#include "coordinator/epoch/altered_blame.h"
#include "coordinator/epoch/disk_looks.h"
#include "coordinator/epoch/run_begin.h"
#include "coordinator/members/joining.h"
#include "coordinator/state/queue.h"

namespace motley::coordinator {
namespace {

constexpr int kMaxPlannings = 2;

absl::Status ResumeRun(Core& core, const JobId& id) {
  JobRecord& job = core.state.jobs.at(id);
  JobRun& run = BeginRun(core, id);
  TellOfRestart(core, run);
  run.started_processes = true;
  auto epoch = core.store.NewestEpoch(id);
  if (!epoch.ok() && !absl::IsNotFound(epoch.status())) return epoch.status();
  if (epoch.ok()) {
    run.ranks_from = epoch->epoch;
    for (const EpochRow::Rank& rank : epoch->ranks) {
      run.ranks.push_back({rank.device, rank.incarnation, 0});
      // They saw the right data and folder when the epoch began, and their workers live still if they come with this incarnation.
      if (!run.has_run) continue;
      run.storage_ok[NodeOf(rank.device)] = run.proven[NodeOf(rank.device)] = rank.incarnation;
    }
  }
  MOTLEY_RETURN_IF_ERROR(RecountAltered(core));
  return core.SetPhase(job, JobPhase::kReplanning,
                       "the coordinator was restarted and gives its workers a lease's time to come back");
}

// A model or a cluster on which the planner crashes, or takes all memory, would take the service down at every start.
absl::Status GiveUpOnPlannersDeath(Core& core) {
  for (auto& [id, job] : core.state.jobs) {
    if (IsFinal(job.phase) || job.plannings_begun < kMaxPlannings) continue;
    Batch batch;
    batch.jobs.push_back(WithPhase(job, JobPhase::kFailed,
                                   absl::StrCat("the coordinator ended ", Count(job.plannings_begun, "time"),
                                                " in a row while it planned this job; submit it with another "
                                                "strategy, and report it with the job file")));
    batch.jobs[0].finished_unix_ms = core.journal.UnixMs();
    batch.events.push_back(PhaseEvent(job, batch.jobs[0]));
    MOTLEY_RETURN_IF_ERROR(core.journal.Commit(batch));
    job = batch.jobs[0];
  }
  return absl::OkStatus();
}

absl::Status Restore(Core& core) {
  core.counted.Load(BootId());
  MOTLEY_ASSIGN_OR_RETURN(std::vector<JobRecord> jobs, core.store.LoadJobs());
  for (JobRecord& job : jobs) core.state.jobs[job.id] = std::move(job);
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<NodeName> drained, core.store.LoadDrained());
  for (const NodeName& name : drained) {
    NodeRecord& node = core.state.nodes[name];
    node.description.name = name;
    node.drained = true;
    node.reason = "drained by the user; not seen since the coordinator was started";
    node.last_seen = core.clock.Now();
  }
  MOTLEY_RETURN_IF_ERROR(LoadMembers(core));
  MOTLEY_RETURN_IF_ERROR(LoadUnwanted(core));
  MOTLEY_ASSIGN_OR_RETURN(core.state.speeds, core.store.LoadSpeeds());
  core.state.membership_changed = core.clock.Now();
  EventRecord event;
  event.kind = kind::kCoordinatorStarted;
  event.message = absl::StrCat("coordinator ", kVersion, " started with ", Count(core.state.jobs.size(), "job"));
  core.Emit(std::move(event));
  core.metrics.store_findings.Set(static_cast<double>(core.store.findings()));
  return absl::OkStatus();
}

}  // namespace

absl::Status Recover(Core& core) {
  MOTLEY_RETURN_IF_ERROR(Restore(core));
  MOTLEY_RETURN_IF_ERROR(GiveUpOnPlannersDeath(core));
  const QueueDecision queue = DecideQueue(core.state);
  if (!queue.activate) return absl::OkStatus();
  if (core.state.jobs.at(*queue.activate).phase != JobPhase::kQueued) {
    MOTLEY_RETURN_IF_ERROR(ResumeRun(core, *queue.activate));
  }
  for (const auto& [id, job] : core.state.jobs) {
    if (job.phase == JobPhase::kWaiting && id != *queue.activate) PutAsideAgain(core, id);
  }
  return absl::OkStatus();
}

}  // namespace motley::coordinator
