#include "coordinator/journal.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/clean_text.h"
#include "common/logging.h"

namespace motley::coordinator {
namespace {

void Clean(JobRecord& job) {
  job.reason = CleanLine(job.reason);
  job.newest_checkpoint = CleanLine(job.newest_checkpoint);
}

}  // namespace

Journal::Journal(const Config& config, Clock& clock, Store& store, Metrics& metrics,
                 std::function<void(std::function<void()>)> post)
    : config_(config),
      clock_(clock),
      store_(store),
      metrics_(metrics),
      post_(std::move(post)),
      base_(absl::ToUnixMillis(clock.WallNow()) * 1000) {}

int64_t Journal::UnixMs() const { return absl::ToUnixMillis(clock_.WallNow()); }

absl::Status Journal::Commit(Batch& batch) {
  for (EventRecord& event : batch.events) {
    event.unix_ms = UnixMs();
    event.message = CleanLine(event.message);
  }
  for (JobRecord& job : batch.jobs) Clean(job);
  if (absl::Status status = store_.Commit(batch); !status.ok()) return status;
  for (const EventRecord& event : batch.events) {
    metrics_.events.Add({{"kind", event.kind}});
    LogInfo(absl::StrCat(event.kind, event.job.empty() ? "" : absl::StrCat(" job=", event.job.value()),
                         event.epoch.value() == 0 ? "" : absl::StrCat(" epoch=", event.epoch.value()), ": ", event.message));
    if (event.job.empty()) {
      Wake();
      continue;
    }
    AddLog(event.job, "coordinator", absl::StrCat(event.kind, ": ", event.message), event.unix_ms);
    Add(event.job, event);
  }
  for (const JobRecord& job : batch.jobs) Publish(job);
  return absl::OkStatus();
}

void Journal::Publish(const JobRecord& job) {
  JobRecord clean = job;
  Clean(clean);
  Add(job.id, std::make_shared<const JobRecord>(std::move(clean)));
}
void Journal::PublishStep(const JobId& job, const StepStats& step) { Add(job, step); }

void Journal::AddLog(const JobId& job, std::string source, std::string text, int64_t unix_ms) {
  Ring<LogRecord>& logs = RingsOf(job).logs;
  logs.Add({logs.newest() + 1, unix_ms, CleanLine(source), CleanLine(text)});
  Wake();
}

void Journal::Add(const JobId& job, Update update) {
  RingsOf(job).updates.Add(std::move(update));
  Wake();
}

Journal::Rings& Journal::RingsOf(const JobId& job) {
  auto it = rings_.find(job);
  if (it == rings_.end()) {
    it = rings_.emplace(job, Rings{Ring<Update>(config_.updates_kept, base_), Ring<LogRecord>(config_.log_lines_kept, base_)})
             .first;
  }
  return it->second;
}

void Journal::Forget(const JobId& job) { rings_.erase(job); }

void Journal::WaitForNews(std::function<void()> wake) { waiters_.push_back(std::move(wake)); }

void Journal::Wake() {
  if (waiters_.empty() || wake_posted_) return;
  wake_posted_ = true;
  post_([this] {
    wake_posted_ = false;
    std::vector<std::function<void()>> waiters;
    waiters.swap(waiters_);
    for (std::function<void()>& wake : waiters) wake();
  });
}

}  // namespace motley::coordinator
