#include "coordinator/core/histories.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/logging.h"

namespace motley::coordinator {

Histories::Entry& Histories::EntryOf(const JobId& job) {
  const auto known = entries_.find(job);
  if (known != entries_.end() && !known->second.unread) return known->second;
  Entry& entry = entries_[job];
  const bool said = entry.unread;
  absl::StatusOr<std::string> bytes = store_.FindHistory(job);
  entry.unread = !bytes.ok() && !absl::IsDataLoss(bytes.status());
  if (bytes.ok() && bytes->empty()) return entry;
  absl::StatusOr<History> history = bytes.ok() ? History::FromBytes(*bytes) : bytes.status();
  if (history.ok()) {
    entry.history = *std::move(history);
  } else if (!said) {
    LogError(absl::StrCat("the curve of job ", job.value(),
                          entry.unread ? " cannot be read now: " : " begins anew: ", std::string(history.status().message())));
  }
  return entry;
}

void Histories::Add(const JobId& job, const StepStats& step) {
  Entry& entry = EntryOf(job);
  entry.history.Add(step);
  entry.changed = true;
}

void Histories::AddDue(Batch* batch) {
  for (const JobRecord& job : batch->jobs) {
    const auto found = entries_.find(job.id);
    if (found == entries_.end() || !found->second.changed || found->second.unread) continue;
    const Entry& entry = found->second;
    const bool waited = !entry.stored_at || clock_.Now() - *entry.stored_at >= kStoredEvery;
    const bool begun = LastBucket(entry.history) != entry.stored_bucket;
    if (IsFinal(job.phase) || waited || begun) batch->histories.push_back({job.id, entry.history.ToBytes()});
  }
}

void Histories::Stored(const Batch& batch) {
  for (const HistoryRow& row : batch.histories) {
    const auto found = entries_.find(row.job);
    if (found == entries_.end()) continue;
    found->second.changed = false;
    found->second.stored_at = clock_.Now();
    found->second.stored_bucket = LastBucket(found->second.history);
  }
}

}  // namespace motley::coordinator
