#include "common/base/stop_signals.h"

namespace motley {

sigset_t BlockStopSignals(std::initializer_list<int> more) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  for (const int number : more) sigaddset(&signals, number);
  struct sigaction hang_up = {};
  // Blocked it would be kept for sigtimedwait, ignored or not.
  if (sigaction(SIGHUP, nullptr, &hang_up) == 0 && hang_up.sa_handler != SIG_IGN) sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

bool AsksToHurry(int number) { return number > 0 && number != SIGHUP; }

void IgnoreSignalsOfWrites() {
  for (const int number : {SIGPIPE, SIGXFSZ}) signal(number, SIG_IGN);
}

}  // namespace motley
