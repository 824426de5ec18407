// Tells systemd that the coordinator serves, for as long as it does: each time over a connection of its own, through the
// acceptor, gRPC and the loop.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/steady_condition.h"

namespace motley::coordinator {

// Asks the health service at `address` (as gRPC dials it) over a new connection. Blocks for at most `patience`.
absl::Status AskHealth(const std::string& address, absl::Duration patience);

class Watchdog {
 public:
  // Calls `alive` from a thread of its own, every `interval` at most, after the address answered.
  Watchdog(std::string address, absl::Duration interval, std::function<void()> alive);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // A third of what the service manager allows; zero when it does not watch.
  static absl::Duration IntervalOfSystemd();

 private:
  void Run();

  const std::string address_;
  const absl::Duration interval_;
  const std::function<void()> alive_;
  SteadyCondition changed_;
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace motley::coordinator
