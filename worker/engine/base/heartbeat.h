// Calls `beat` at once and then at every interval, from a thread of its own, as long as it lives: for work that takes long
// and reports nothing. `beat` must be thread-safe. After `most` it is silent: work that hangs is to be seen.
#pragma once

#include <functional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/steady_condition.h"

namespace motley::engine {

// Of a card that starts: gigabytes of libraries from a cold disk, a context, kernels that are loaded at their first launch.
inline constexpr absl::Duration kStartBeat = absl::Seconds(1), kLongestStart = absl::Minutes(5);

class Heartbeat {
 public:
  Heartbeat(absl::Duration interval, std::function<void()> beat, absl::Duration most = absl::InfiniteDuration())
      : thread_([this, interval, most, beat = std::move(beat)] {
          absl::Duration beaten;
          do {
            beat();
            beaten += interval;
          } while (!IsOverWithin(interval) && beaten < most);
        }) {}
  ~Heartbeat() {
    {
      absl::MutexLock lock(&mutex_);
      over_ = true;
      changed_.NotifyAll();
    }
    thread_.join();
  }
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  bool IsOverWithin(absl::Duration interval) {
    absl::MutexLock lock(&mutex_);
    return changed_.WaitFor(mutex_, interval, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return over_; });
  }

  SteadyCondition changed_;
  absl::Mutex mutex_;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace motley::engine
