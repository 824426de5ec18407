#include "common/base/clock.h"

#include <ctime>

namespace motley {

absl::Duration SystemClock::Now() const {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return absl::DurationFromTimespec(now);
}

}  // namespace motley
