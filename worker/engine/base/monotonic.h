// CLOCK_MONOTONIC in nanoseconds, and sleeping until such a time. Shared by what paces compute and links.
#pragma once

#include <cerrno>
#include <cstdint>
#include <ctime>

namespace motley::engine {

inline int64_t MonotonicNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Returns at once when `until_ns` is past.
inline void SleepUntilNs(int64_t until_ns) {
  if (until_ns <= MonotonicNs()) return;
  const timespec until{until_ns / 1'000'000'000, until_ns % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

}  // namespace motley::engine
