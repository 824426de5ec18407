#include "coordinator/rpc/find_job.h"

#include "absl/strings/str_cat.h"

namespace motley::coordinator {

absl::StatusOr<JobRecord*> FindJob(Core& core, const std::string& id) {
  if (id.empty()) return absl::InvalidArgumentError("job_id must not be empty");
  auto it = core.state.jobs.find(JobId(id));
  if (it == core.state.jobs.end())
    return absl::NotFoundError(
        absl::StrCat("job '", id.substr(0, 80), "' is not known; `motley list` (ListJobs) shows the known ones"));
  return &it->second;
}

}  // namespace motley::coordinator
