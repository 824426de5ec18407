#include "coordinator/rpc/get_job.h"

#include "common/base/status_macros.h"
#include "common/wire/transport.h"
#include "coordinator/rpc/find_job.h"
#include "coordinator/rpc/job_lanes.h"
#include "coordinator/rpc/job_memory.h"
#include "coordinator/rpc/views.h"
#include "coordinator/state/transports.h"

namespace motley::coordinator {

absl::Status GetJob(Core& core, const v1::GetJobRequest& request, v1::GetJobResponse* response) {
  MOTLEY_ASSIGN_OR_RETURN(const JobRecord* job, FindJob(core, request.job_id()));
  *response->mutable_job() = View(core, *job);
  if (core.state.run && core.state.run->job == job->id) {
    for (const TransportUse& use : FoundTransports(*core.state.run)) *response->add_transports() = wire::ToProto(use);
  }
  if (request.lanes()) AddLanes(core, *job, response);
  if (request.memory()) MOTLEY_RETURN_IF_ERROR(AddMemory(core, *job, response));
  return absl::OkStatus();
}

}  // namespace motley::coordinator
