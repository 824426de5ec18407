// Times of change are ticks of the kernel's clock, some milliseconds long: two changes within one are not told apart.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <time.h>

#include <string>
#include <thread>
#include <tuple>

namespace motley {

// Until what is changed now has another time than the file's newest change.
inline void AwaitAnotherTick(const std::string& path) {
  struct stat changed;
  ASSERT_EQ(::stat(path.c_str(), &changed), 0);
  timespec now{};
  do {
    std::this_thread::yield();
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
  } while (std::tie(now.tv_sec, now.tv_nsec) <= std::tie(changed.st_ctim.tv_sec, changed.st_ctim.tv_nsec));
}

}  // namespace motley
