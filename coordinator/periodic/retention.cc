#include "coordinator/periodic/retention.h"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/logging.h"
#include "common/base/status_macros.h"
#include "coordinator/epoch/disk_looks.h"
#include "coordinator/periodic/ring_pruner.h"

namespace motley::coordinator {
namespace {

// Of one turn, so that nobody waits for it: twenty events a second may come in for ever.
constexpr size_t kJobsAtOnce = 20;
constexpr int64_t kRowsAtOnce = 1200;

// A job that was resumed and ended again is another thing.
std::string ThingOf(const JobRecord& job) { return absl::StrCat("job/", job.id.value(), "/", job.finished_unix_ms); }

JobAges AgesOfFinished(Core& core) {
  JobAges ages;
  std::set<std::string> things;
  for (const auto& [id, job] : core.state.jobs) {
    if (!IsFinal(job.phase)) continue;
    things.insert(ThingOf(job));
    ages[id] = core.counted.AgeOf(ThingOf(job));
  }
  core.counted.Keep("job/", [&](const std::string& thing) { return things.contains(thing); });
  return ages;
}

void ForgetJobs(Core& core, std::vector<JobId> jobs) {
  if (jobs.empty()) return;
  const auto add = [](std::string* out, const JobId& id) { absl::StrAppend(out, id.value()); };
  const std::string names = absl::StrJoin(jobs, ", ", add);
  const absl::Status status = Forget(core, std::move(jobs), absl::StrCat("finished jobs are kept no longer: ", names));
  if (!status.ok()) LogError(absl::StrCat("finished jobs could not be forgotten: ", std::string(status.message())));
}

}  // namespace

absl::Status Forget(Core& core, std::vector<JobId> jobs, const std::string& message, Batch batch) {
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
  NoteUnwanted(core, batch);
  return absl::OkStatus();
}

std::vector<JobId> JobsToForget(const JobAges& ages, const ClusterState& state, const RetentionConfig& config, size_t limit) {
  struct Finished {
    absl::Duration age;
    int64_t unix_ms = 0;  // of those that have been counted for as long, the wall clock says which was first
    JobId id;
  };
  std::vector<Finished> finished;
  for (const auto& [id, age] : ages) finished.push_back({age, state.jobs.at(id).finished_unix_ms, id});
  std::sort(finished.begin(), finished.end(), [](const Finished& a, const Finished& b) {
    return std::tuple(-a.age, a.unix_ms, a.id) < std::tuple(-b.age, b.unix_ms, b.id);
  });
  const auto surplus = static_cast<int64_t>(finished.size()) - config.jobs;
  std::vector<JobId> jobs;
  for (size_t i = 0; i < finished.size() && jobs.size() < limit; ++i) {
    const bool old = finished[i].age > absl::Hours(24) * config.days;
    if (static_cast<int64_t>(i) < surplus || old) jobs.push_back(finished[i].id);
  }
  return jobs;
}

void Retain(Core& core) {
  const RetentionConfig& config = core.config.retention;
  ForgetJobs(core, JobsToForget(AgesOfFinished(core), core.state, config, kJobsAtOnce));
  core.counted.SaveNowAndThen();
  const absl::StatusOr<int64_t> removed = core.store.Prune({config.events, config.profiles, config.epochs}, kRowsAtOnce);
  if (!removed.ok()) LogError(absl::StrCat("old rows could not be removed: ", std::string(removed.status().message())));
}

}  // namespace motley::coordinator
