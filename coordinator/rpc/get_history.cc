#include "coordinator/rpc/get_history.h"

#include "common/base/status_macros.h"
#include "coordinator/rpc/find_job.h"
#include "coordinator/rpc/views.h"

namespace motley::coordinator {

absl::Status GetHistory(Core& core, const v1::GetHistoryRequest& request, v1::GetHistoryResponse* response) {
  MOTLEY_ASSIGN_OR_RETURN(const JobRecord* job, FindJob(core, request.job_id()));
  *response->mutable_history() = View(core.journal.histories().Of(job->id));
  return absl::OkStatus();
}

}  // namespace motley::coordinator
