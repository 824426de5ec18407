#include "coordinator/rpc/stop_job.h"

#include "common/base/status_macros.h"
#include "coordinator/epoch/epoch_driver.h"
#include "coordinator/rpc/find_job.h"
#include "coordinator/rpc/views.h"

namespace motley::coordinator {

absl::Status StopJob(Core& core, const v1::StopJobRequest& request, v1::StopJobResponse* response) {
  MOTLEY_ASSIGN_OR_RETURN(JobRecord * job, FindJob(core, request.job_id()));
  if (!IsFinal(job->phase) && !job->stop_requested) {
    Batch batch;
    batch.jobs.push_back(*job);
    batch.jobs[0].stop_requested = true;
    MOTLEY_RETURN_IF_ERROR(core.journal.Commit(batch));
    *job = batch.jobs[0];
    Drive(core);
  }
  *response->mutable_job() = View(core, *job);
  return absl::OkStatus();
}

}  // namespace motley::coordinator
