#include "coordinator/rpc/get_job.h"

#include "common/base/status_macros.h"
#include "coordinator/rpc/find_job.h"
#include "coordinator/rpc/views.h"

namespace motley::coordinator {

absl::Status GetJob(Core& core, const v1::GetJobRequest& request, v1::GetJobResponse* response) {
  MOTLEY_ASSIGN_OR_RETURN(const JobRecord* job, FindJob(core, request.job_id()));
  *response->mutable_job() = View(core, *job);
  return absl::OkStatus();
}

}  // namespace motley::coordinator
