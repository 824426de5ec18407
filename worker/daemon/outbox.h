// What waits to be sent to the coordinator. Bounded by number and by bytes: while the coordinator is away, log lines and then
// step reports are dropped, oldest first; events, results and answers never are (their number is bounded by what the coordinator
// asked for). Thread-safe.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/steady_condition.h"
#include "common/session/session.h"

namespace motley::worker {

struct OutboxLimits {
  size_t messages = 10'000;
  size_t bytes = 16 << 20;
};

class Outbox {
 public:
  explicit Outbox(OutboxLimits limits = {}) : limits_(limits) {}

  void Push(WorkerReport report);
  // The oldest one, if there is one.
  std::optional<WorkerReport> TryPop();
  // What could not be sent goes back to the front.
  void PutBack(WorkerReport report);

  // Until somebody calls Wake, something waits to be sent (with `for_reports`), or the time is over. One waiter.
  void Wait(absl::Duration timeout, bool for_reports);
  void Wake();

  size_t size() const;
  size_t dropped() const;  // in all
  // A line for the log of each job of which something was dropped since the last call.
  std::vector<LogReport> TakeDropped();

 private:
  struct Waiting {
    WorkerReport report;
    size_t bytes;
  };
  struct Dropped {
    Epoch epoch;
    int64_t logs = 0, steps = 0;
  };
  void TrimLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EraseLocked(std::deque<Waiting>::iterator it) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const OutboxLimits limits_;
  SteadyCondition changed_;
  mutable absl::Mutex mutex_;
  std::deque<Waiting> reports_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<JobId, Dropped> dropped_of_ ABSL_GUARDED_BY(mutex_);
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace motley::worker
