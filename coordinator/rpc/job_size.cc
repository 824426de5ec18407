#include "coordinator/rpc/job_size.h"

#include <algorithm>
#include <string>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/count.h"
#include "common/job/job_fields.h"
#include "coordinator/rpc/person.h"

namespace motley::coordinator {
namespace {

// What is long in a description are its documents; the rest counts as this much.
constexpr size_t kOtherFieldsBytes = 4 << 10;

size_t DocumentBytes(const JobConfig& config) {
  return kOtherFieldsBytes + config.model.config_json.size() + config.planner.plan_json.size();
}

}  // namespace

absl::Status CheckJobSize(const JobConfig& config) {
  JobConfig copy = config;
  size_t bytes = 0, largest_bytes = 0;
  std::string largest;
  for (const JobField& field : JobFields(copy)) {
    const auto* text = std::get_if<std::string*>(&field.value);
    if (text == nullptr || *text == &copy.planner.plan_json) continue;
    bytes += (*text)->size();
    if ((*text)->size() <= largest_bytes) continue;
    largest_bytes = (*text)->size();
    largest = field.Path();
  }
  if (bytes <= kMaxJobBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(largest, " has ", largest_bytes, " bytes; a job may have ", kMaxJobBytes,
                                                 " in all besides planner.plan_json, this one has ", bytes));
}

absl::Status CheckJobsOfAccount(const ClusterState& state, const CallingAccount& caller, size_t limit) {
  if (limit == 0 || caller.admin || caller.uid < 0) return absl::OkStatus();
  const auto jobs = static_cast<size_t>(std::count_if(state.jobs.begin(), state.jobs.end(), [&](const auto& entry) {
    return !IsFinal(entry.second.phase) && entry.second.owner_uid == caller.uid;
  }));
  if (jobs < limit) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      caller.name, " has ", Count(jobs, "job"), " that ", jobs == 1 ? "has" : "have", " not ended; limits.account_jobs allows ",
      limit, ". Stop some, try again when some have ended, or ask a member of group ", kAdminGroup));
}

absl::Status CheckRoomForJob(const ClusterState& state, const JobConfig& config, size_t limit_bytes) {
  size_t bytes = DocumentBytes(config);
  int jobs = 0;
  for (const auto& [id, job] : state.jobs) {
    if (IsFinal(job.phase)) continue;
    bytes += DocumentBytes(job.config);
    ++jobs;
  }
  if (bytes <= limit_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the descriptions of ", jobs, " jobs that have not ended and of this one take ", bytes,
                   " bytes; limits.job_bytes allows ", limit_bytes, ". Stop some jobs, or try again when some have ended"));
}

}  // namespace motley::coordinator
