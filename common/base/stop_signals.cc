#include "common/base/stop_signals.h"

#include <cerrno>
#include <initializer_list>

namespace motley {
namespace {

// Blocked it would be kept for sigtimedwait, ignored or not.
bool IsIgnored(int number) {
  struct sigaction action = {};
  return sigaction(number, nullptr, &action) != 0 || action.sa_handler == SIG_IGN;
}

pthread_t taker;

// In a thread that does not block it, where it would be the end of the process.
void HandOn(int number) {
  const int before = errno;
  if (pthread_equal(pthread_self(), taker) == 0) {
    pthread_kill(taker, number);
  } else {  // it does not block it any more
    signal(number, SIG_DFL);
    raise(number);
  }
  errno = before;
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
  taker = pthread_self();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  struct sigaction hand_on = {};
  hand_on.sa_handler = HandOn;
  hand_on.sa_flags = SA_RESTART;
  for (int number = 1; number < SIGRTMIN; ++number) {
    if (sigismember(&signals, number) == 1) sigaction(number, &hand_on, nullptr);
  }
  return signals;
}

bool AsksToHurry(int number) { return number == SIGTERM || number == SIGINT; }

void IgnoreSignalsOfWrites() {
  for (const int number : {SIGPIPE, SIGXFSZ}) signal(number, SIG_IGN);
}

}  // namespace motley
