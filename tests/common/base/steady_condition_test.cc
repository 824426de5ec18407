#include "common/base/steady_condition.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "absl/time/clock.h"

namespace {

std::atomic<int64_t> wall_shift_seconds{0};

}  // namespace

// What this program takes for the wall clock may differ from the kernel's: as if somebody set it right after it was read.
extern "C" int clock_gettime(clockid_t id, timespec* out) noexcept {
  const long result = syscall(SYS_clock_gettime, id, out);
  if (id == CLOCK_REALTIME) out->tv_sec += wall_shift_seconds;
  return static_cast<int>(result);
}
// absl computes the end of a wait from this one.
extern "C" int gettimeofday(timeval* out, void*) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  *out = {.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
  return 0;
}

namespace motley {
namespace {

TEST(SteadyCondition, ALimitIsOverWhateverHappensToTheWallClock) {
  const absl::Time before = absl::Now();
  wall_shift_seconds = 3600;  // read before it is set back an hour
  ASSERT_GT(absl::Now() - before, absl::Minutes(59)) << "absl's clock must be the one above";
  SteadyCondition changed;
  absl::Mutex mutex;
  {
    absl::MutexLock lock(&mutex);
    EXPECT_FALSE(changed.WaitFor(mutex, absl::Milliseconds(20), [] { return false; }));  // absl's own wait takes an hour here
  }
  wall_shift_seconds = 0;
}

TEST(SteadyCondition, ANotificationEndsAWaitWithoutLimit) {
  SteadyCondition changed;
  absl::Mutex mutex;
  bool ready = false;
  std::thread other([&] {
    absl::MutexLock lock(&mutex);
    ready = true;
    changed.NotifyAll();
  });
  {
    absl::MutexLock lock(&mutex);
    EXPECT_TRUE(changed.WaitFor(mutex, absl::InfiniteDuration(), [&] { return ready; }));
  }
  other.join();
}

}  // namespace
}  // namespace motley
