#include "coordinator/epoch/run_begin.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/logging.h"
#include "coordinator/epoch/ending.h"
#include "planner/live/job_request.h"

namespace motley::coordinator {
namespace {

JobRun MakeRun(Core& core, const JobId& id) {
  const JobRecord& job = core.state.jobs.at(id);
  JobRun run;
  run.job = id;
  // Steps reach the store with the next checkpoint or change: a job that was running may have done some.
  run.has_run = job.step > 0 || job.phase == JobPhase::kRunning || !job.newest_checkpoint.empty();
  run.stage_since = core.clock.Now();
  run.named = planner::NamedPlaces(job.config.planner);
  absl::StatusOr<std::set<DeviceId>> devices = core.store.DevicesOf(id);
  if (devices.ok()) {
    run.took_part = *std::move(devices);
  } else {
    LogWarning(std::string(devices.status().message()));
  }
  return run;
}

}  // namespace

JobRun& BeginRun(Core& core, const JobId& id) {
  if (auto aside = core.state.aside.extract(id); !aside.empty()) return core.state.run.emplace(std::move(aside.mapped()));
  return core.state.run.emplace(MakeRun(core, id));
}

void PutAside(Core& core) {
  JobRun& run = *core.state.run;
  const JobRecord& job = core.state.jobs.at(run.job);
  LeaveCluster(core, job.reason);
  if (run.stage == Stage::kPlanning && run.looking) run.folder.why = job.reason;  // the look goes on, and says when it is back
  run.looking = false;
  run.prepared.reset();
  run.stage = Stage::kIdle;
  run.stage_since = core.clock.Now();
  run.ranks.clear();
  run.ranks_in_order = false;
  run.storage.clear();
  run.probes.clear();
  run.probe_token = ProbeToken();
  run.trial.reset();
  run.aside.since = core.clock.Now();
  run.aside.membership = core.state.membership_changed;
  run.aside.why = job.reason;
  run.aside.of_folder = !run.folder.why.empty();
  if (run.tried) run.aside.most_tried = std::max(run.aside.most_tried, run.considered.size());
  run.aside.times += std::exchange(run.tried, false);
  const JobId id = run.job;
  core.state.aside.insert_or_assign(id, std::move(run));
  core.state.run.reset();
}

void PutAsideAgain(Core& core, const JobId& id) {
  JobRun run = MakeRun(core, id);
  TellOfRestart(core, run);
  run.lends_since = run.aside.since = core.clock.Now();
  run.aside.membership = -absl::InfiniteDuration();  // it is asked at once
  run.aside.why = "the coordinator was restarted; waits for devices as before";
  // It may have waited for its folder: it is seen first whether that answers.
  if (const std::string folder = CheckpointFolder(core.state.jobs.at(id)); !folder.empty()) {
    run.aside.why = run.folder.why =
        absl::StrCat("the coordinator was restarted and looks into the job's checkpoint folder '", folder, "' first");
    run.aside.of_folder = true;
    run.folder.looked = -absl::InfiniteDuration();
  }
  core.state.aside.insert_or_assign(id, std::move(run));
}

void TellOfRestart(const Core& core, JobRun& run) {
  run.not_before = core.clock.Now() + core.config.lease;
  run.last_step_at = core.clock.Now();
  if (!run.has_run) return;
  run.replan_cause = "the coordinator was restarted";
  run.cause_label = "coordinator_restarted";
  run.step_before_replan = core.state.jobs.at(run.job).step;
}

}  // namespace motley::coordinator
