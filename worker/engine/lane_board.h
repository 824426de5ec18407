// Which instructions of a program are done, when they ended by the emulated schedule, and the first error. Thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace motley::engine {

class LaneBoard {
 public:
  LaneBoard(size_t instructions, absl::Duration begin) : done_(instructions, false), end_(instructions, begin), begin_(begin) {}

  // Waits for all of `after`. False when a lane has failed; else `ready` is the latest of their ends.
  bool Wait(const std::vector<int32_t>& after, absl::Duration* ready) {
    absl::MutexLock lock(&mutex_);
    *ready = begin_;
    for (const int32_t i : after) {
      while (!done_[i] && error_.ok()) changed_.Wait(&mutex_);
      if (!error_.ok()) return false;
      *ready = std::max(*ready, end_[i]);
    }
    return error_.ok();
  }
  void Done(size_t instruction, absl::Duration end) {
    absl::MutexLock lock(&mutex_);
    done_[instruction] = true;
    end_[instruction] = end;
    changed_.SignalAll();
  }
  // True for the first failure.
  bool Fail(const absl::Status& error) {
    absl::MutexLock lock(&mutex_);
    const bool first = error_.ok();
    if (first) error_ = error;
    changed_.SignalAll();
    return first;
  }
  absl::Status error() const {
    absl::MutexLock lock(&mutex_);
    return error_;
  }

 private:
  mutable absl::Mutex mutex_;
  absl::CondVar changed_;
  std::vector<bool> done_ ABSL_GUARDED_BY(mutex_);
  std::vector<absl::Duration> end_ ABSL_GUARDED_BY(mutex_);
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
  const absl::Duration begin_;
};

}  // namespace motley::engine
