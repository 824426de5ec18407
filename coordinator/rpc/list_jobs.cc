#include "coordinator/rpc/list_jobs.h"

#include <algorithm>
#include <vector>

#include "coordinator/rpc/views.h"

namespace motley::coordinator {

absl::Status ListJobs(Core& core, const v1::ListJobsRequest& request, v1::ListJobsResponse* response) {
  std::vector<const JobRecord*> jobs;
  for (const auto& [id, job] : core.state.jobs) jobs.push_back(&job);
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const auto* a, const auto* b) { return a->submitted_unix_ms < b->submitted_unix_ms; });
  for (const JobRecord* job : jobs) *response->add_jobs() = View(*job);
  return absl::OkStatus();
}

}  // namespace motley::coordinator
