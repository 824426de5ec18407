// The first cause that ended a communicator: what other threads see of that end is no cause. Thread-safe.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/fault.h"

namespace motley::engine {

class FirstCause {
 public:
  // False: there was one before.
  bool Set(const std::string& reason) {
    absl::MutexLock lock(&mutex_);
    if (!reason_.empty()) return false;
    reason_ = reason;
    return true;
  }

  // UNAVAILABLE, Fault::kPeer: "WHAT: REASON".
  absl::Status NotAborted(const std::string& what) {
    absl::MutexLock lock(&mutex_);
    if (reason_.empty()) return absl::OkStatus();
    return WithFault(absl::UnavailableError(absl::StrCat(what, ": ", reason_)), Fault::kPeer);
  }

 private:
  absl::Mutex mutex_;
  std::string reason_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace motley::engine
