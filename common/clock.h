// The one clock interface. Steady: jumps of the wall clock do not move it. Tests advance a FakeClock and never sleep.
#pragma once

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
  absl::Duration Now() const override { return now_; }
  absl::Time WallNow() const override { return absl::UnixEpoch() + now_; }
  void Advance(absl::Duration d) { now_ += d; }

 private:
  absl::Duration now_ = absl::Seconds(1000);
};

}  // namespace motley
