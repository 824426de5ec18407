#include "common/base/stop_signals.h"

#include <initializer_list>

namespace motley {
namespace {

// Blocked it would be kept for sigtimedwait, ignored or not.
bool IsIgnored(int number) {
  struct sigaction action = {};
  return sigaction(number, nullptr, &action) != 0 || action.sa_handler == SIG_IGN;
}

}  // namespace

sigset_t BlockStopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  if (!IsIgnored(SIGHUP)) sigaddset(&signals, SIGHUP);
  for (const int number : kSignalsWithoutMeaning) {
    if (!IsIgnored(number)) sigaddset(&signals, number);
  }
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

bool AsksToHurry(int number) { return number == SIGTERM || number == SIGINT; }

void IgnoreSignalsOfWrites() {
  for (const int number : {SIGPIPE, SIGXFSZ}) signal(number, SIG_IGN);
}

}  // namespace motley
