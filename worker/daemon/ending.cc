#include "worker/daemon/ending.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

namespace motley::worker {
namespace {

// How often systemd's watchdog is told: three times in its limit. -1: there is none.
int WatchdogTurnMilliseconds() {
  uint64_t limit_us = 0;
  return sd_watchdog_enabled(0, &limit_us) > 0 ? static_cast<int>(limit_us / 3'000) : -1;
}

}  // namespace

Ending::Ending(const sigset_t& signals)
    : wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), asked_(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK)) {}

void Ending::Refuse(absl::Status why) {
  {
    absl::MutexLock lock(&mutex_);
    refused_ = std::move(why);
  }
  const uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof(one));
}

std::optional<absl::Status> Ending::Wait(const std::function<bool()>& alive) {
  const int turn = WatchdogTurnMilliseconds();
  while (true) {
    pollfd fds[] = {{wake_.get(), POLLIN, 0}, {asked_.get(), POLLIN, 0}};
    if (poll(fds, 2, turn) == 0 && alive()) sd_notify(0, "WATCHDOG=1");
    {
      absl::MutexLock lock(&mutex_);
      if (refused_) return *std::move(refused_);
    }
    signalfd_siginfo signal;
    if (read(asked_.get(), &signal, sizeof(signal)) == static_cast<ssize_t>(sizeof(signal))) return std::nullopt;
  }
}

}  // namespace motley::worker
