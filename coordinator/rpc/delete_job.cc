#include "coordinator/rpc/delete_job.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "coordinator/periodic/retention.h"
#include "coordinator/rpc/find_job.h"

namespace motley::coordinator {

absl::Status DeleteJob(Core& core, const v1::DeleteJobRequest& request, v1::DeleteJobResponse* response) {
  MOTLEY_ASSIGN_OR_RETURN(const JobRecord* job, FindJob(core, request.job_id()));
  if (!IsFinal(job->phase)) {
    return absl::FailedPreconditionError(absl::StrCat("job ", job->id.value(), " has not ended, it is ",
                                                      std::string(JobPhaseName(job->phase)), "; stop it first: motley stop ",
                                                      job->id.value()));
  }
  // One that has made a step may have written a checkpoint whose word was lost.
  const bool never_wrote = job->newest_checkpoint.empty() && job->step == 0;
  const std::string folder = never_wrote ? "" : CheckpointFolder(*job), adopt = folder.empty() ? "" : AdoptText(*job);
  MOTLEY_RETURN_IF_ERROR(
      Forget(core, {job->id},
             absl::StrCat("job ", job->id.value(), " was deleted",
                          IsOnNodesDisks(job->config.checkpoint) ? absl::StrCat("; what it saved, in ", job->id.value(), ".",
                                                                                job->uid.value(), ", stays on the nodes' disks")
                          : folder.empty()                       ? ", which had no checkpoint"
                                           : absl::StrCat("; its checkpoints, of uid ", adopt, ", stay in ", folder))));
  response->set_checkpoint_folder(folder);
  response->set_adopt(adopt);
  return absl::OkStatus();
}

}  // namespace motley::coordinator
