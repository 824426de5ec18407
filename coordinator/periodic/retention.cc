#include "coordinator/periodic/retention.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/logging.h"
#include "common/base/status_macros.h"
#include "coordinator/periodic/ring_pruner.h"

namespace motley::coordinator {
namespace {

// Of one turn, so that nobody waits for it: twenty events a second may come in for ever.
constexpr size_t kJobsAtOnce = 20;
constexpr int64_t kRowsAtOnce = 1200;
constexpr int64_t kDayMs = 24 * 60 * 60 * 1000;

void ForgetJobs(Core& core, std::vector<JobId> jobs) {
  if (jobs.empty()) return;
  const auto add = [](std::string* out, const JobId& id) { absl::StrAppend(out, id.value()); };
  const std::string names = absl::StrJoin(jobs, ", ", add);
  const absl::Status status = Forget(core, std::move(jobs), absl::StrCat("finished jobs are kept no longer: ", names));
  if (!status.ok()) LogError(absl::StrCat("finished jobs could not be forgotten: ", std::string(status.message())));
}

}  // namespace

absl::Status Forget(Core& core, std::vector<JobId> jobs, const std::string& message) {
  Batch batch;
  EventRecord event;
  event.kind = kind::kJobsForgotten;
  event.message = message;
  batch.events.push_back(std::move(event));
  batch.forgotten = std::move(jobs);
  MOTLEY_RETURN_IF_ERROR(core.journal.Commit(batch));
  for (const JobId& id : batch.forgotten) {
    // Workers have seen its numbers: a new job of this id begins above them.
    auto job = core.state.jobs.find(id);
    if (job->second.epoch > Epoch()) core.state.foreign_epochs[id] = job->second.epoch;
    core.state.jobs.erase(job);
    ForgetInMemory(core, id);
  }
  return absl::OkStatus();
}

std::vector<JobId> JobsToForget(int64_t now_unix_ms, const ClusterState& state, const RetentionConfig& config, size_t limit) {
  std::vector<std::pair<int64_t, JobId>> finished;
  for (const auto& [id, job] : state.jobs) {
    if (IsFinal(job.phase)) finished.emplace_back(job.finished_unix_ms, id);
  }
  std::sort(finished.begin(), finished.end());
  const auto surplus = static_cast<int64_t>(finished.size()) - config.jobs;
  std::vector<JobId> jobs;
  for (size_t i = 0; i < finished.size() && jobs.size() < limit; ++i) {
    const bool old = finished[i].first < now_unix_ms - config.days * kDayMs;
    if (static_cast<int64_t>(i) < surplus || old) jobs.push_back(finished[i].second);
  }
  return jobs;
}

void Retain(Core& core) {
  const RetentionConfig& config = core.config.retention;
  ForgetJobs(core, JobsToForget(core.journal.UnixMs(), core.state, config, kJobsAtOnce));
  const absl::StatusOr<int64_t> removed = core.store.Prune({config.events, config.profiles, config.epochs}, kRowsAtOnce);
  if (!removed.ok()) LogError(absl::StrCat("old rows could not be removed: ", std::string(removed.status().message())));
}

}  // namespace motley::coordinator
