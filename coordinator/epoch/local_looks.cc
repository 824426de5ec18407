#include "coordinator/epoch/local_looks.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/count.h"
#include "coordinator/epoch/carrying.h"
#include "coordinator/epoch/copies.h"
#include "coordinator/epoch/damaged_files.h"
#include "coordinator/epoch/disk_looks.h"
#include "coordinator/epoch/holdings_round.h"
#include "coordinator/epoch/inputs.h"
#include "coordinator/epoch/local_resume.h"

namespace motley::coordinator {
namespace {

// Behind a start of the coordinator: its workers find it within this time, those of machines that start with it, too.
constexpr absl::Duration kComingBack = absl::Seconds(60);

// Whose weights a job begins with that names a job; what is known of one that was deleted is enough to find its files.
JobStatus InitialOf(const Core& core, const JobRecord& job) {
  const auto other = core.state.jobs.find(job.initial_of.job);
  if (other != core.state.jobs.end() && other->second.uid == job.initial_of.uid) return other->second;
  JobStatus deleted;
  deleted.id = job.initial_of.job;
  deleted.uid = job.initial_of.uid;
  return deleted;
}

// Without what that job gave up, as long as it is known, and what it or this one found damaged.
Holdings HoldingsOfInitial(Core& core, const HoldingsRound& round, const JobStatus& initial, const JobId& of) {
  Holdings held = HoldingsOf(core, round, initial);
  LeaveOutDamaged(core, initial.id, held);
  if (const JobRun* begins = RunOf(core, of)) LeaveOutDamaged(begins->damaged_of_initial, held);
  const JobRun* run = RunOf(core, initial.id);
  std::erase_if(held.checkpoints, [&](const UnitedCheckpoint& each) {
    return initial.go_back.GaveUp(each.head.epoch, each.head.step) || (run != nullptr && run->damaged.contains(each.head.name));
  });
  return held;
}

// It has nothing of its own to go on from, as far as is known.
bool MayBegin(const JobRecord& job) {
  return job.newest_checkpoint.empty() && job.safe_checkpoint.empty() && !AwaitsAdopted(job) && job.go_back.step == 0;
}

void End(Core& core, const JobId& id) {
  const LocalLook look = std::move(core.local_looks.extract(id).mapped());
  const auto job = core.state.jobs.find(id);
  if (job != core.state.jobs.end()) {
    look.task->wish.held = HoldingsOf(core, look.round, job->second);
    LeaveOutDamaged(core, id, look.task->wish.held);
    if (look.initial) look.task->wish.held_of_initial = HoldingsOfInitial(core, *look.initial, InitialOf(core, job->second), id);
  }
  look.task->wish.awaits_published = core.clock.Now() - core.started < kComingBack;
  look.task->prepared = FindLocalResumePoint(look.task->input, look.task->wish);
  look.done();
}

bool HasEnded(const Core& core, const LocalLook& look) {
  return IsOver(core, look.round) && (!look.initial || IsOver(core, *look.initial));
}

void EndIfOver(Core& core, JobId job) {
  if (HasEnded(core, core.local_looks.at(job))) End(core, job);
}

}  // namespace

absl::Status BeginLocalLook(Core& core, const std::shared_ptr<LookTask>& task, std::function<void()> done) {
  const JobRecord& job = core.state.jobs.at(task->job);
  LocalLook& look = core.local_looks[task->job] = {AskForHoldings(core, job), task, std::move(done)};
  if (InitialIsJob(job.config.checkpoint) && MayBegin(job)) look.initial = AskForOthersHoldings(core, InitialOf(core, job));
  return absl::OkStatus();
}

void OnHoldings(Core& core, const NodeName& node, const HoldingsReport& report) {
  if (report.free_bytes > 0) {
    core.metrics.files_free_bytes.Set({{"node", node.value()}}, static_cast<double>(report.free_bytes));
  }
  if (OnHoldingsForInputs(core, node, report) || OnHoldingsForDisks(core, node, report)) return;
  if (OnHoldingsForCopies(core, node, report) || OnHoldingsForCarries(core, node, report)) return;
  for (auto& [job, look] : core.local_looks) {
    const bool taken = TakeHoldings(look.round, node, report) || (look.initial && TakeHoldings(*look.initial, node, report));
    if (taken) return EndIfOver(core, job);
  }
}

void EndLateLooks(Core& core) {
  std::vector<JobId> over;
  for (const auto& [job, look] : core.local_looks) {
    if (HasEnded(core, look)) over.push_back(job);
  }
  for (const JobId& job : over) End(core, job);
}

void OnFetch(Core& core, const NodeName& node, const FetchReport& report) {
  JobRun& run = *core.state.run;
  run.begins_with_other ? NoteDamagedInitial(run, node, report) : NoteDamagedFiles(core, node, report, run.resumed_from);
  if (run.stage != Stage::kStarting) return;
  run.stage_since = core.clock.Now();
  if (report.done) core.metrics.files_bytes.Add({{"purpose", kBytesOfStarts}}, static_cast<double>(report.bytes_here));
  if (report.done || report.bytes <= 0) return;
  core.SetReason(core.state.jobs.at(run.job),
                 absl::StrFormat("node %s brings its part of checkpoint %s: %.0f %% of %s", node.value(), run.resumed_from,
                                 100.0 * static_cast<double>(report.bytes_here) / static_cast<double>(report.bytes),
                                 Count(report.bytes, "byte")));
}

}  // namespace motley::coordinator
