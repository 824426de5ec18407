// The one clock interface. Steady: jumps of the wall clock do not move it. Tests advance a FakeClock and never sleep.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace motley {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // Steady time since an arbitrary origin (CLOCK_MONOTONIC, so that processes of one machine agree).
  virtual absl::Duration Now() const = 0;
  // Wall time, for people only.
  virtual absl::Time WallNow() const = 0;
};

class SystemClock : public Clock {
 public:
  absl::Duration Now() const override;
  absl::Time WallNow() const override { return absl::Now(); }
};

class FakeClock : public Clock {
 public:
  absl::Duration Now() const override { return absl::Nanoseconds(now_ns_.load()); }
  absl::Time WallNow() const override { return absl::UnixEpoch() + Now() + absl::Nanoseconds(wall_shift_ns_.load()); }
  void Advance(absl::Duration d) { now_ns_ += absl::ToInt64Nanoseconds(d); }
  // Somebody sets the wall clock; steady time does not notice.
  void MoveWall(absl::Duration d) { wall_shift_ns_ += absl::ToInt64Nanoseconds(d); }

 private:
  std::atomic<int64_t> now_ns_{1'000'000'000'000};
  std::atomic<int64_t> wall_shift_ns_{0};
};

}  // namespace motley
