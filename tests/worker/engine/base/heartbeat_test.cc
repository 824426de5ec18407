#include "worker/engine/base/heartbeat.h"

#include <gtest/gtest.h>

#include <atomic>

#include "absl/synchronization/blocking_counter.h"
#include "absl/time/clock.h"

namespace motley::engine {
namespace {

TEST(HeartbeatTest, BeatsUntilDestroyed) {
  constexpr int kBeats = 3;
  absl::BlockingCounter expected(kBeats);
  std::atomic<int> beats{0};
  {
    Heartbeat heartbeat(absl::Milliseconds(1), [&] {
      if (++beats <= kBeats) expected.DecrementCount();
    });
    expected.Wait();
  }
  EXPECT_GE(beats, kBeats);
}

TEST(HeartbeatTest, IsSilentAfterItsTime) {
  constexpr int kMost = 3;
  std::atomic<int> beats{0};
  Heartbeat heartbeat(
      absl::Milliseconds(1), [&] { ++beats; }, absl::Milliseconds(kMost));
  while (beats < kMost) absl::SleepFor(absl::Milliseconds(1));
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_EQ(beats, kMost);
}

TEST(HeartbeatTest, EndsWithoutWaitingForTheInterval) {
  std::atomic<int> beats{0};
  {
    Heartbeat heartbeat(absl::Hours(1), [&] { ++beats; });
  }
  EXPECT_EQ(beats, 1);
}

}  // namespace
}  // namespace motley::engine
