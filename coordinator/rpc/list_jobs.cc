#include "coordinator/rpc/list_jobs.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "coordinator/rpc/page.h"
#include "coordinator/rpc/views.h"

namespace motley::coordinator {

absl::Status ListJobs(Core& core, const v1::ListJobsRequest& request, v1::ListJobsResponse* response) {
  std::vector<std::pair<std::string, const JobRecord*>> jobs;
  const auto wanted = [&request](const JobRecord& job) {
    return request.states().empty() || std::count(request.states().begin(), request.states().end(), StateOf(job.phase)) > 0;
  };
  for (const auto& [id, job] : core.state.jobs) {
    if (!wanted(job)) continue;
    const int64_t time = job.submitted_unix_ms;
    const int64_t rank = request.newest_first() ? std::numeric_limits<int64_t>::max() - time : time;
    jobs.emplace_back(absl::StrFormat("%016x:%s", rank, id.value()), &job);
  }
  std::sort(jobs.begin(), jobs.end());
  MOTLEY_ASSIGN_OR_RETURN(*response->mutable_next_page_token(),
                          AddPage(jobs, request.page_size(), request.page_token(), [&core, response](const JobRecord& job) {
                            v1::Job* view = response->add_jobs();
                            *view = View(core, job);
                            return view->ByteSizeLong();
                          }));
  return absl::OkStatus();
}

}  // namespace motley::coordinator
