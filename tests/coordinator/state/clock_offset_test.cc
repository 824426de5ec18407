#include "coordinator/state/clock_offset.h"

#include <gtest/gtest.h>

#include <limits>

namespace motley::coordinator {
namespace {

constexpr int64_t kNow = 1'700'000'000'000;

TEST(ClockOffsetTest, TheLeastDelayedHeartbeatCounts) {
  ClockOffset clock;
  EXPECT_FALSE(clock.estimate());
  for (const int64_t delay : {300, 5, 80}) clock.Add(kNow + 2000, kNow + delay);
  EXPECT_EQ(clock.estimate()->offset_ms, 1995);
  EXPECT_GE(clock.estimate()->margin_ms, 295);
  EXPECT_TRUE(clock.estimate()->beyond(1000));
}

TEST(ClockOffsetTest, DelaysAloneAreNoOffset) {
  ClockOffset clock;
  for (const int64_t delay : {2500, 3000, 1}) clock.Add(kNow, kNow + delay);
  EXPECT_FALSE(clock.estimate()->beyond(1000));
  ClockOffset behind;
  for (const int64_t delay : {0, 10}) behind.Add(kNow - 1500, kNow + delay);
  EXPECT_TRUE(behind.estimate()->beyond(1000));
  EXPECT_LT(behind.estimate()->offset_ms, 0);
}

TEST(ClockOffsetTest, AClockThatIsSetIsUncertainForAWhileAndThenBelieved) {
  ClockOffset clock;
  for (int i = 0; i < 8; ++i) clock.Add(kNow - 60'000, kNow);
  clock.Add(kNow, kNow);
  EXPECT_FALSE(clock.estimate()->beyond(1000));
  for (int i = 0; i < 8; ++i) clock.Add(kNow, kNow);
  EXPECT_EQ(clock.estimate()->offset_ms, 0);
  EXPECT_LT(clock.estimate()->margin_ms, 10);
}

TEST(ClockOffsetTest, AnyNumberMayCome) {
  ClockOffset clock;
  clock.Add(0, kNow);
  EXPECT_FALSE(clock.estimate()) << "an older worker says nothing";
  for (const int64_t any : {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(), int64_t{-1}})
    clock.Add(any, kNow);
  EXPECT_GT(clock.estimate()->margin_ms, 0);
}

}  // namespace
}  // namespace motley::coordinator
