#include "worker/engine/transport/segment_message.h"

#include <sys/prctl.h>

#include "absl/strings/str_cat.h"
#include "common/base/fault.h"
#include "worker/engine/base/monotonic.h"

namespace motley::engine {

LinkClock::Slot SlotNow() {
  const int64_t now_ns = MonotonicNs();
  return {now_ns, now_ns};
}

iovec Part(const void* data, int64_t bytes) { return {const_cast<void*>(data), static_cast<size_t>(bytes)}; }

absl::Status Aborted() { return absl::UnavailableError("aborted"); }

absl::Status Lost(const Peer& peer, const absl::Status& error) {
  return WithFault(absl::UnavailableError(absl::StrCat("lost ", peer.name, ": ", error.message())), Fault::kPeer);
}

absl::Status DifferentPrograms(const Peer& peer, const std::string& sent, const std::string& expected) {
  return WithFault(absl::UnavailableError(
                       absl::StrCat(peer.name, " sent ", sent, " instead of ", expected, ": the ranks run different programs")),
                   Fault::kOurs);
}

void AwaitEnd(TransferTimes& times, bool paced) {
  const int64_t now_ns = MonotonicNs();
  if (!paced) {
    times.end_ns = now_ns;
  } else if (now_ns > times.end_ns) {
    times.lateness_ns = now_ns - times.end_ns;
  } else {
    SleepUntilNs(times.end_ns);
  }
}

void WakePunctually() {
  constexpr unsigned long kSlackNs = 1000;
  prctl(PR_SET_TIMERSLACK, kSlackNs);
}

}  // namespace motley::engine
