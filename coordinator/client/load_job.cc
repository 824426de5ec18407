#include "coordinator/client/load_job.h"

#include "absl/strings/str_split.h"
#include "planner/live/job_request.h"

namespace motley::client {
namespace {

std::vector<std::string> PlannerProblems(const JobConfig& config) {
  const absl::Status words = planner::CheckPlannerWords(config.planner);
  return absl::StrSplit(words.message(), '\n', absl::SkipEmpty());
}

}  // namespace

absl::StatusOr<JobFile> LoadJob(const std::string& path, const std::vector<std::string>& overrides) {
  return LoadJobFile(path, overrides, PlannerProblems);
}

}  // namespace motley::client
