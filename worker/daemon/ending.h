// What ends a worker: a signal that asks for it, or the coordinator, which will not have it. The main thread waits here for
// either.
#pragma once

#include <signal.h>

#include <functional>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "worker/daemon/spawn.h"

namespace motley::worker {

// Thread-safe.
class Ending {
 public:
  // `signals` are blocked in every thread.
  explicit Ending(const sigset_t& signals);

  // From any thread: the coordinator refused the worker, and why.
  void Refuse(absl::Status why);
  // Blocks until one of the signals comes (nothing is returned) or a refusal (its reason). Meanwhile systemd's watchdog, if there
  // is one, is told that the daemon lives while `alive` says so.
  std::optional<absl::Status> Wait(const std::function<bool()>& alive);

 private:
  const UniqueFd wake_;   // eventfd
  const UniqueFd asked_;  // signalfd
  absl::Mutex mutex_;
  std::optional<absl::Status> refused_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace motley::worker
