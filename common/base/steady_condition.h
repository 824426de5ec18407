// Waits with a limit that follow the steady clock. absl's own timed waits follow the wall clock: set it back an hour while one
// of them waits for a second, and it waits for an hour.
#pragma once

#include <algorithm>
#include <condition_variable>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace motley {

// Thread-safe. Who changes what others wait for calls NotifyAll afterwards.
class SteadyCondition {
 public:
  void NotifyAll() { changed_.notify_all(); }

  // Until `ready` (called with `mutex` held) or the timeout; what `ready` says at the end.
  template <typename Ready>
  bool WaitFor(absl::Mutex& mutex, absl::Duration timeout, Ready ready)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    Lockable lock{mutex};
    return changed_.wait_for(lock, absl::ToChronoNanoseconds(std::clamp(timeout, absl::ZeroDuration(), kLongest)), ready);
  }

 private:
  static constexpr absl::Duration kLongest = absl::Hours(24 * 365);  // steady time plus this still fits

  struct Lockable {
    void lock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex.Lock(); }
    void unlock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex.Unlock(); }
    absl::Mutex& mutex;
  };
  std::condition_variable_any changed_;
};

}  // namespace motley
