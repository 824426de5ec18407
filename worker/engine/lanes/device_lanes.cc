#include "worker/engine/lanes/device_lanes.h"

#include <algorithm>
#include <thread>

#include "absl/time/clock.h"

namespace motley::engine {
namespace {

// Kernels end within microseconds of each other: a look costs one, so the first looks follow each other.
constexpr int kLooksAtOnce = 100;
constexpr absl::Duration kFirstPause = absl::Microseconds(10), kLongestPause = absl::Microseconds(500);
constexpr absl::Duration kHealthInterval = absl::Milliseconds(20);

}  // namespace

void DeviceLanes::Fail(const absl::Status& error) {
  {
    absl::MutexLock lock(&mutex_);
    if (!error_.ok()) return;
    error_ = error;
    changed_.SignalAll();
  }
  if (on_error_) on_error_(error);
}

absl::Status DeviceLanes::Await(const LaneEvent& event, const std::function<bool()>& given_up) {
  const auto* const own = dynamic_cast<const HostEvent*>(&event);
  if (own == nullptr) return Poll([&event] { return event.Fired(); }, given_up);
  absl::MutexLock lock(&mutex_);
  while (!own->done_ && error_.ok()) {
    if (given_up && given_up()) return absl::CancelledError("the lane ends");
    changed_.Wait(&mutex_);
  }
  return error_;
}

absl::Status DeviceLanes::Await(const StreamMark& mark, const std::function<bool()>& given_up) {
  return Poll([&mark] { return mark.Reached(); }, given_up);
}

absl::Status DeviceLanes::Poll(const std::function<absl::StatusOr<bool>()>& fired, const std::function<bool()>& given_up) {
  absl::Duration pause = kFirstPause;
  absl::Time next_health = absl::Now() + kHealthInterval;
  for (int looks = 0;; ++looks) {
    const absl::StatusOr<bool> now = fired();
    if (!now.ok()) Fail(now.status());
    if (absl::Status first = error(); !first.ok() || *now) return first;
    if (given_up && given_up()) return absl::CancelledError("the lane ends");
    if (looks < kLooksAtOnce) {
      std::this_thread::yield();
      continue;
    }
    absl::SleepFor(pause);
    pause = std::min(2 * pause, kLongestPause);
    if (!health_ || absl::Now() < next_health) continue;
    next_health = absl::Now() + kHealthInterval;
    if (const absl::Status health = health_(); !health.ok()) Fail(health);
  }
}

}  // namespace motley::engine
