#include "worker/engine/lanes/lane_timer.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "tests/worker/engine/lanes/clocked_stream.h"
#include "tests/worker/engine/lanes/fake_streams.h"
#include "worker/engine/lanes/compute_pacer.h"

namespace motley::engine {
namespace {

absl::Status NoWork() { return absl::OkStatus(); }

class LaneTimerTest : public ::testing::Test {
 protected:
  SystemClock clock_;
  ComputePacer pacer_{DeviceDescription(), clock_};
};

// The host's time is in no figure: the work takes some of it, and the stream says another.
TEST_F(LaneTimerTest, AStreamsTimeIsBetweenItsMarks) {
  ClockedStream stream([](int number) { return absl::Seconds(10 + number); });
  LaneTimer timer(&stream, pacer_);
  timer.Settle();
  timer.Run(NoWork);
  const LaneTime first = timer.Measure(1e9, NoWork), second = timer.Measure(1e9, NoWork);
  ASSERT_EQ(timer.Await(), absl::OkStatus());
  EXPECT_DOUBLE_EQ(first.seconds(), 11);
  EXPECT_DOUBLE_EQ(second.seconds(), 12);
}

TEST_F(LaneTimerTest, NobodyWaitsBetweenPieces) {
  ClockedStream stream([](int) { return absl::Seconds(1); });
  LaneTimer timer(&stream, pacer_);
  for (int i = 0; i < 5; ++i) timer.Measure(std::nullopt, NoWork);
  EXPECT_EQ(stream.looks(), 0);
  EXPECT_EQ(timer.Await(), absl::OkStatus());
  EXPECT_GT(stream.looks(), 0);
}

TEST_F(LaneTimerTest, WithoutAStreamADeclaredTimeCounts) {
  DeviceDescription declared;
  declared.flops_per_second = 1e9;
  ComputePacer pacer(declared, clock_);
  LaneTimer timer(nullptr, pacer);
  EXPECT_FALSE(timer.on_stream());
  bool ran = false;
  const LaneTime time = timer.Measure(2e6, [&ran] {
    ran = true;
    return absl::OkStatus();
  });
  EXPECT_EQ(timer.Await(), absl::OkStatus());
  EXPECT_TRUE(ran);
  EXPECT_GE(time.seconds(), 2e-3 * (1 - 1e-6));
}

TEST_F(LaneTimerTest, PiecesRunInTheirOrderHoweverLateTheStreamIs) {
  FakeStreamDevice device(7);
  const auto stream = device.MakeStream();
  std::vector<int> order;
  LaneTimer timer(stream.get(), pacer_);
  std::vector<LaneTime> times;
  for (int i = 0; i < 20; ++i) {
    times.push_back(timer.Measure(std::nullopt, [&order, i] {
      order.push_back(i);
      return absl::OkStatus();
    }));
  }
  ASSERT_EQ(timer.Await(), absl::OkStatus());
  for (int i = 0; i < 20; ++i) EXPECT_EQ(order[i], i);
  for (const LaneTime& time : times) EXPECT_GE(time.seconds(), 0);
}

TEST_F(LaneTimerTest, TheFirstErrorEndsTheSeriesAndNotTheStream) {
  FakeStreamDevice device(7);
  const auto stream = device.MakeStream();
  for (DeviceStream* const on : {stream.get(), static_cast<DeviceStream*>(nullptr)}) {
    int ran = 0;
    const auto count = [&ran] {
      ++ran;
      return absl::OkStatus();
    };
    LaneTimer failing(on, pacer_);
    failing.Run(count);
    failing.Measure(1, [] { return absl::AbortedError("no room"); });
    failing.Run(count);
    EXPECT_EQ(failing.Await(), absl::AbortedError("no room"));
    EXPECT_EQ(ran, 1);
    LaneTimer throwing(on, pacer_);
    throwing.Run([]() -> absl::Status { throw std::out_of_range("thrown"); });
    throwing.Run(count);
    EXPECT_THROW(throwing.Await().IgnoreError(), std::out_of_range);
    LaneTimer next(on, pacer_);
    next.Run(count);
    EXPECT_EQ(next.Await(), absl::OkStatus());
    EXPECT_EQ(ran, 2);
  }
}

TEST_F(LaneTimerTest, TheDevicesErrorIsSaid) {
  FakeStreamDevice device(7);
  const auto stream = device.MakeStream();
  LaneTimer timer(stream.get(), pacer_);
  timer.Run(NoWork);
  device.Fail(absl::InternalError("a kernel went wrong"));
  EXPECT_EQ(timer.Await(), absl::InternalError("a kernel went wrong"));
}

}  // namespace
}  // namespace motley::engine
