#include "coordinator/rpc/list_jobs.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/status_macros.h"
#include "coordinator/rpc/page.h"
#include "coordinator/rpc/views.h"

namespace motley::coordinator {

absl::Status ListJobs(Core& core, const v1::ListJobsRequest& request, v1::ListJobsResponse* response) {
  std::vector<std::pair<std::string, const JobRecord*>> jobs;
  for (const auto& [id, job] : core.state.jobs) {
    jobs.emplace_back(absl::StrFormat("%016x:%s", job.submitted_unix_ms, id.value()), &job);
  }
  std::sort(jobs.begin(), jobs.end());
  MOTLEY_ASSIGN_OR_RETURN(*response->mutable_next_page_token(),
                          AddPage(jobs, request.page_size(), request.page_token(), [response](const JobRecord& job) {
                            v1::Job* view = response->add_jobs();
                            *view = View(job);
                            return view->ByteSizeLong();
                          }));
  return absl::OkStatus();
}

}  // namespace motley::coordinator
