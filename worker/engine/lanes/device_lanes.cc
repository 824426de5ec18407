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
    changed_.NotifyAll();
  }
  if (on_error_) on_error_(error);
}

absl::Status DeviceLanes::Await(const LaneEvent& event, const std::function<bool()>& given_up) {
  const auto* const own = dynamic_cast<const HostEvent*>(&event);
  if (own == nullptr) return Poll([&event] { return event.Fired(); }, given_up);
  bool cancelled = false;
  AwaitChange([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (own->done_ || !error_.ok()) return true;
    return cancelled = given_up && given_up();
  });
  return cancelled ? absl::CancelledError("the lane ends") : error();
}

absl::Status DeviceLanes::Await(const StreamMark& mark, const std::function<bool()>& given_up) {
  return Poll([&mark] { return mark.Reached(); }, given_up);
}

void DeviceLanes::AskHealth() {
  if (!health_ || !error().ok()) return;
  if (const absl::Status health = health_(); !health.ok()) Fail(health);
}

void DeviceLanes::AwaitChange(const std::function<bool()>& ready) {
  for (;;) {
    {
      absl::MutexLock lock(&mutex_);
      if (changed_.WaitFor(mutex_, health_ ? kHealthInterval : absl::InfiniteDuration(), ready)) return;
    }
    AskHealth();
  }
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
    if (absl::Now() < next_health) continue;
    next_health = absl::Now() + kHealthInterval;
    AskHealth();
  }
}

}  // namespace motley::engine
