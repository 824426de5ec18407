#include "worker/engine/base/heartbeat.h"

#include <gtest/gtest.h>

#include <atomic>

#include "absl/synchronization/blocking_counter.h"

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
  constexpr int kMost = 3, kLonger = 50;
  const absl::Duration interval = absl::Milliseconds(1);
  std::atomic<int> beats{0}, others{0};
  absl::BlockingCounter longer(kLonger);
  {
    const Heartbeat heartbeat(
        interval, [&] { ++beats; }, kMost * interval);
    const Heartbeat other(interval, [&] {
      if (++others <= kLonger) longer.DecrementCount();
    });
    longer.Wait();
  }
  EXPECT_LE(beats, kMost);
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
