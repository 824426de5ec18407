#include "coordinator/epoch/local_looks.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/count.h"
#include "common/base/logging.h"
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

// Numbers of a job's generations stand above those of the one that it adopts: `resume --from` is about these, too.
void CountAdopted(Core& core, JobRecord& job, Epoch next) {
  if (!AwaitsAdopted(job) || next.value() - 1 <= job.epoch.value()) return;
  Batch batch;
  batch.jobs.push_back(job);
  batch.jobs[0].epoch = Epoch(next.value() - 1);
  // Not stored, it is found again by the next look.
  if (const absl::Status status = core.journal.Commit(batch); !status.ok()) return LogError(std::string(status.message()));
  job = batch.jobs[0];
}

void End(Core& core, const JobId& id) {
  const LocalLook look = std::move(core.local_looks.extract(id).mapped());
  const auto job = core.state.jobs.find(id);
  if (job != core.state.jobs.end()) {
    look.task->wish.held = HoldingsOf(core, look.round, job->second);
    LeaveOutDamaged(core, id, look.task->wish.held);
  }
  look.task->wish.awaits_published = core.clock.Now() - core.started < kComingBack;
  look.task->prepared = FindLocalResumePoint(look.task->input, look.task->wish);
  if (job != core.state.jobs.end() && !look.task->prepared.status.ok())
    CountAdopted(core, job->second, look.task->prepared.epoch);
  look.done();
}

}  // namespace

absl::Status BeginLocalLook(Core& core, const std::shared_ptr<LookTask>& task, std::function<void()> done) {
  core.local_looks[task->job] = {AskForHoldings(core, core.state.jobs.at(task->job)), task, std::move(done)};
  return absl::OkStatus();
}

void OnHoldings(Core& core, const NodeName& node, const HoldingsReport& report) {
  if (report.free_bytes > 0) {
    core.metrics.files_free_bytes.Set({{"node", node.value()}}, static_cast<double>(report.free_bytes));
  }
  if (OnHoldingsForInputs(core, node, report) || OnHoldingsForDisks(core, node, report)) return;
  if (OnHoldingsForCopies(core, node, report) || OnHoldingsForCarries(core, node, report)) return;
  const auto look = core.local_looks.find(report.job);
  if (look == core.local_looks.end() || !TakeHoldings(look->second.round, node, report)) return;
  if (IsOver(core, look->second.round)) End(core, report.job);
}

void EndLateLooks(Core& core) {
  std::vector<JobId> over;
  for (const auto& [job, look] : core.local_looks) {
    if (IsOver(core, look.round)) over.push_back(job);
  }
  for (const JobId& job : over) End(core, job);
}

void OnFetch(Core& core, const NodeName& node, const FetchReport& report) {
  JobRun& run = *core.state.run;
  NoteDamagedFiles(core, node, report, run.resumed_from);
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
