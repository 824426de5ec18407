#include "coordinator/core/journal.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "common/base/cut_text.h"
#include "common/base/logging.h"

namespace motley::coordinator {
namespace {

constexpr size_t kMaxSourceBytes = 256;  // the name of a node or device has at most 127

size_t BytesOf(const DataSummary& data) { return data.digest.size() + data.tokenizer.size(); }
// What an entry of a ring takes, with its texts; the pointer's own block is small beside them.
size_t BytesOf(const JobStatus& job) {
  return sizeof(Update) + sizeof(JobStatus) + job.id.value().size() + job.reason.size() + job.newest_checkpoint.size() +
         job.safe_checkpoint.size() + BytesOf(job.data) + BytesOf(job.validation) + job.initial_digest.size() +
         job.uid.value().size() + job.adopted.size();
}
size_t BytesOf(const EventRecord& event) {
  return sizeof(Update) + event.job.value().size() + event.kind.size() + event.node.value().size() + event.device.value().size() +
         event.message.size();
}

void Clean(JobStatus& job) {
  job.reason = KeptText(job.reason, kMaxTextBytes);
  job.newest_checkpoint = KeptText(job.newest_checkpoint, kMaxTextBytes);
}

}  // namespace

std::string KeptText(std::string_view text, size_t max_bytes) {
  // Cut first, so that little is escaped, and again, because an escape is longer than its byte.
  return CutText(CleanLine(CutText(text, max_bytes)), max_bytes);
}

Journal::Journal(const Config& config, Clock& clock, Store& store, Metrics& metrics,
                 std::function<void(std::function<void()>)> post)
    : config_(config),
      clock_(clock),
      store_(store),
      metrics_(metrics),
      post_(std::move(post)),
      base_(absl::ToUnixMillis(clock.WallNow()) * 1000),
      histories_(clock, store) {}

int64_t Journal::UnixMs() const { return absl::ToUnixMillis(clock_.WallNow()); }

absl::Status Journal::Commit(Batch& batch) {
  for (EventRecord& event : batch.events) {
    event.unix_ms = UnixMs();
    event.message = KeptText(event.message, kMaxTextBytes);
  }
  for (JobRecord& job : batch.jobs) Clean(job);
  histories_.AddDue(&batch);
  if (absl::Status status = store_.Commit(batch); !status.ok()) return status;
  histories_.Stored(batch);
  for (const EventRecord& event : batch.events) {
    metrics_.events.Add({{"kind", event.kind}});
    (kind::IsTrouble(event.kind) ? LogWarning : LogInfo)(
        absl::StrCat(event.kind, event.job.empty() ? "" : absl::StrCat(" job=", event.job.value()),
                     event.epoch.value() == 0 ? "" : absl::StrCat(" generation=", event.epoch.value()), ": ", event.message));
    Wake({NewsKind::kEvents, JobId()});
    if (event.job.empty()) continue;
    Wake({NewsKind::kEvents, event.job});
    AddLog(event.job, "coordinator", absl::StrCat(event.kind, ": ", event.message), event.unix_ms);
    Add(event.job, event, BytesOf(event));
  }
  for (const JobRecord& job : batch.jobs) Publish(job);
  return absl::OkStatus();
}

void Journal::Publish(const JobStatus& job) {
  auto kept = std::make_shared<JobStatus>(job);
  Clean(*kept);
  const size_t bytes = BytesOf(*kept);
  Add(job.id, std::move(kept), bytes);
  if (IsFinal(job.phase)) Wake({NewsKind::kLogs, job.id});  // whoever follows the lines ends with the job
}

void Journal::PublishStep(const JobId& job, const StepStats& step) {
  histories_.Add(job, step);
  Add(job, step, sizeof(Update));
}

void Journal::AddLog(const JobId& job, std::string source, std::string text, int64_t unix_ms) {
  Ring<LogRecord>& logs = RingsOf(job).logs;
  LogRecord line{logs.newest() + 1, unix_ms, KeptText(source, kMaxSourceBytes), KeptText(text, kMaxTextBytes)};
  const size_t bytes = sizeof(LogRecord) + line.source.size() + line.text.size();
  logs.Add(std::move(line), bytes);
  Wake({NewsKind::kLogs, job});
}

void Journal::Add(const JobId& job, Update update, size_t bytes) {
  RingsOf(job).updates.Add(std::move(update), bytes);
  Wake({NewsKind::kUpdates, job});
}

Journal::Rings& Journal::RingsOf(const JobId& job) {
  auto it = rings_.find(job);
  if (it == rings_.end()) {
    it = rings_
             .emplace(job, Rings{Ring<Update>(config_.updates_kept, config_.update_bytes_kept, base_),
                                 Ring<LogRecord>(config_.log_lines_kept, config_.log_bytes_kept, base_)})
             .first;
  }
  return it->second;
}

void Journal::Forget(const JobId& job) {
  histories_.Forget(job);
  if (rings_.erase(job) == 0) return;
  for (const NewsKind kind : {NewsKind::kUpdates, NewsKind::kLogs, NewsKind::kEvents}) Wake({kind, job});
}

int64_t Journal::WaitForNews(const Topic& topic, std::function<void()> wake) {
  waiters_[topic].emplace(++tickets_, std::move(wake));
  return tickets_;
}

void Journal::StopWaiting(const Topic& topic, int64_t ticket) {
  auto it = waiters_.find(topic);
  if (it == waiters_.end()) return;
  it->second.erase(ticket);
  if (it->second.empty()) waiters_.erase(it);
}

void Journal::Wake(const Topic& topic) {
  auto waiters = waiters_.extract(topic);
  if (waiters.empty()) return;
  const bool posted = !ready_.empty();
  for (auto& [ticket, wake] : waiters.mapped()) ready_.push_back(std::move(wake));
  if (posted) return;
  post_([this] {
    std::vector<std::function<void()>> ready;
    ready.swap(ready_);
    for (std::function<void()>& wake : ready) wake();
  });
}

}  // namespace motley::coordinator
