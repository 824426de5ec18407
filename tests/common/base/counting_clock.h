// A clock that says how often it was asked: whoever asks between two tries has made one.
#pragma once

#include <atomic>
#include <functional>

#include "common/base/clock.h"

namespace motley {

class CountingClock : public SystemClock {
 public:
  absl::Duration Now() const override {
    if (++asked == calls_at && at) at();
    return SystemClock::Now();
  }
  mutable std::atomic<int> asked{0};
  // Called once, by whoever asks for the so-manieth time.
  int calls_at = 0;
  std::function<void()> at;
};

}  // namespace motley
