#include "worker/daemon/outbox.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace motley::worker {
namespace {

// About what it takes in memory; only what may be large is counted.
struct Weigh {
  size_t operator()(const LogReport& log) const { return log.text.size(); }
  size_t operator()(const RankReport& rank) const { return rank.message.size(); }
  size_t operator()(const KvSetReport& set) const { return set.key.size() + set.value.size(); }
  size_t operator()(const CheckpointFailedReport& failed) const { return failed.message.size(); }
  size_t operator()(const StorageReport& storage) const { return storage.error.size(); }
  size_t operator()(const ProfileReport& profile) const {
    size_t points = profile.collectives.points.size();
    for (const ComputeProfile& each : profile.compute) points += 3 * each.layer.points.size();
    return profile.error.size() + points * sizeof(ComputePoint);
  }
  size_t operator()(const TraceReport& trace) const { return trace.error.size() + trace.spans.size() * sizeof(InstructionSpan); }
  template <typename Report>
  size_t operator()(const Report&) const {
    return 0;
  }
};

size_t BytesOf(const WorkerReport& report) { return sizeof(report) + std::visit(Weigh(), report); }

template <typename Kind>
bool Is(const WorkerReport& report) {
  return std::holds_alternative<Kind>(report);
}

}  // namespace

void Outbox::Push(WorkerReport report) {
  absl::MutexLock lock(&mutex_);
  const size_t bytes = BytesOf(report);
  reports_.push_back({std::move(report), bytes});
  bytes_ += bytes;
  TrimLocked();
  changed_.NotifyAll();
}

void Outbox::PutBack(WorkerReport report) {
  absl::MutexLock lock(&mutex_);
  const size_t bytes = BytesOf(report);
  reports_.push_front({std::move(report), bytes});
  bytes_ += bytes;
  TrimLocked();
}

void Outbox::EraseLocked(std::deque<Waiting>::iterator it) {
  bytes_ -= it->bytes;
  reports_.erase(it);
}

void Outbox::TrimLocked() {
  for (bool (*is)(const WorkerReport&) : {&Is<LogReport>, &Is<StepReport>}) {
    auto oldest = reports_.begin();
    while (reports_.size() > limits_.messages || bytes_ > limits_.bytes) {
      oldest = std::find_if(oldest, reports_.end(), [is](const Waiting& waiting) { return is(waiting.report); });
      if (oldest == reports_.end()) break;
      if (const auto* log = std::get_if<LogReport>(&oldest->report)) {
        Dropped& dropped = dropped_of_[log->job];
        dropped.epoch = log->epoch;
        ++dropped.logs;
      } else if (const auto* step = std::get_if<StepReport>(&oldest->report)) {
        Dropped& dropped = dropped_of_[step->job];
        dropped.epoch = step->epoch;
        ++dropped.steps;
      }
      const auto index = oldest - reports_.begin();
      EraseLocked(oldest);
      oldest = reports_.begin() + index;
      ++dropped_;
    }
  }
}

std::optional<WorkerReport> Outbox::TryPop() {
  absl::MutexLock lock(&mutex_);
  if (reports_.empty()) return std::nullopt;
  WorkerReport report = std::move(reports_.front().report);
  EraseLocked(reports_.begin());
  return report;
}

void Outbox::Wait(absl::Duration timeout, bool for_reports) {
  absl::MutexLock lock(&mutex_);
  changed_.WaitFor(mutex_, timeout,
                   [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return woken_ || (for_reports && !reports_.empty()); });
  woken_ = false;
}

void Outbox::Wake() {
  absl::MutexLock lock(&mutex_);
  woken_ = true;
  changed_.NotifyAll();
}

size_t Outbox::size() const {
  absl::MutexLock lock(&mutex_);
  return reports_.size();
}

size_t Outbox::dropped() const {
  absl::MutexLock lock(&mutex_);
  return dropped_;
}

std::vector<LogReport> Outbox::TakeDropped() {
  absl::MutexLock lock(&mutex_);
  std::vector<LogReport> lines;
  for (const auto& [job, dropped] : dropped_of_) {
    LogReport line{job, dropped.epoch, "", "", 0};
    line.text = absl::StrCat(dropped.logs, " log lines and ", dropped.steps,
                             " step reports were dropped: the coordinator did not take them in time");
    lines.push_back(std::move(line));
  }
  dropped_of_.clear();
  return lines;
}

}  // namespace motley::worker
