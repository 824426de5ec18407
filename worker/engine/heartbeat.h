// Calls `beat` at once and then at every interval, from a thread of its own, as long as it lives: for work that takes long
// and reports nothing. `beat` must be thread-safe.
#pragma once

#include <functional>
#include <thread>
#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

namespace motley::engine {

class Heartbeat {
 public:
  Heartbeat(absl::Duration interval, std::function<void()> beat)
      : thread_([this, interval, beat = std::move(beat)] {
          do {
            beat();
          } while (!over_.WaitForNotificationWithTimeout(interval));
        }) {}
  ~Heartbeat() {
    over_.Notify();
    thread_.join();
  }
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  absl::Notification over_;
  std::thread thread_;  // last: it uses the others
};

}  // namespace motley::engine
