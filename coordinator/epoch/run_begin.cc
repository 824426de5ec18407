#include "coordinator/epoch/run_begin.h"

#include <set>
#include <utility>

#include "common/base/logging.h"
#include "planner/live/job_request.h"

namespace motley::coordinator {

JobRun& BeginRun(Core& core, const JobId& id) {
  const JobRecord& job = core.state.jobs.at(id);
  JobRun& run = core.state.run.emplace();
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

}  // namespace motley::coordinator
