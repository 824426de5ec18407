#include "coordinator/rpc/resume_job.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/wire/job.h"
#include "coordinator/epoch/ending.h"
#include "coordinator/epoch/epoch_driver.h"
#include "coordinator/epoch/inputs.h"
#include "coordinator/rpc/check_spec.h"
#include "coordinator/rpc/find_job.h"
#include "coordinator/rpc/job_size.h"
#include "coordinator/rpc/views.h"
#include "coordinator/state/membership.h"
#include "coordinator/state/resume.h"

namespace motley::coordinator {

absl::Status ResumeJob(Core& core, const v1::ResumeJobRequest& request, v1::ResumeJobResponse* response) {
  MOTLEY_ASSIGN_OR_RETURN(JobRecord * job, FindJob(core, request.job_id()));
  JobConfig config = wire::FromProto(request.changes(), job->config);
  config.checkpoint = Decided(config.checkpoint);
  response->set_cursor(core.journal.Updates(job->id).newest());
  if (!IsFinal(job->phase)) {
    if (!(config == job->config) || request.has_from_step()) {
      return absl::FailedPreconditionError(
          absl::StrCat("job ", job->id.value(), " has not ended, it is ", std::string(JobPhaseName(job->phase)), " at step ",
                       job->step, "; its settings, and where it goes on, can change when it has: motley stop ", job->id.value()));
    }
    if (job->stop_requested) {
      MOTLEY_RETURN_IF_ERROR(WithdrawStop(core, *job));
      Drive(core);
      response->set_resumed(true);
    }
    *response->mutable_job() = View(core, *job);
    return absl::OkStatus();
  }
  MOTLEY_RETURN_IF_ERROR(CheckSpec(config));
  const PlannerSection &planner = config.planner, &before = job->config.planner;
  if (planner.pins != before.pins || planner.exclude != before.exclude) {
    MOTLEY_RETURN_IF_ERROR(CheckPlaces(core.state, planner));
  }
  MOTLEY_RETURN_IF_ERROR(CheckRoomForJob(core.state, config, core.config.waiting_job_bytes));
  MOTLEY_RETURN_IF_ERROR(CheckJobsOfAccount(core.state, core.caller, core.config.account_jobs));
  JobRecord ended = *job;
  if (request.has_from_step()) {
    MOTLEY_ASSIGN_OR_RETURN(ended, GoneBack(*job, request.from_step()));
  }
  MOTLEY_ASSIGN_OR_RETURN(JobRecord next, Resumed(ended, config, core.journal.UnixMs()));
  Batch batch;
  batch.events.push_back(PhaseEvent(*job, next));
  batch.jobs.push_back(std::move(next));
  MOTLEY_RETURN_IF_ERROR(core.journal.Commit(batch));
  *job = std::move(batch.jobs[0]);
  KeepInputs(core);  // before it gets the cluster
  Drive(core);
  *response->mutable_job() = View(core, *job);
  response->set_resumed(true);
  return absl::OkStatus();
}

}  // namespace motley::coordinator
