#include "worker/engine/checkpoint_schedule.h"

#include <gtest/gtest.h>

namespace motley::engine {
namespace {

TEST(CheckpointScheduleTest, StepsOrMinutesWhicheverComesFirst) {
  FakeClock clock;
  CheckpointSchedule schedule({.folder = "/c", .interval = 100, .interval_minutes = 10}, clock);
  EXPECT_FALSE(schedule.Due(1));
  EXPECT_TRUE(schedule.Due(100));
  clock.Advance(absl::Minutes(10) - absl::Nanoseconds(1));
  EXPECT_FALSE(schedule.Due(7));
  clock.Advance(absl::Nanoseconds(1));
  EXPECT_TRUE(schedule.Due(7));
  schedule.Saved();
  EXPECT_FALSE(schedule.Due(8)) << "the minutes begin again";
  clock.Advance(absl::Minutes(10));
  EXPECT_TRUE(schedule.Due(9));
}

TEST(CheckpointScheduleTest, ByDefaultByMinutes) {
  FakeClock clock;
  CheckpointSection config;
  config.folder = "/c";
  const CheckpointSchedule schedule(config, clock);
  EXPECT_FALSE(schedule.Due(1));
  clock.Advance(absl::Minutes(10));
  EXPECT_TRUE(schedule.Due(1));
  config.folder = "";
  EXPECT_FALSE(CheckpointSchedule(config, clock).Due(1));
}

TEST(CheckpointScheduleTest, AFailedOneIsTriedAgainLater) {
  FakeClock clock;
  CheckpointSchedule schedule({.folder = "/c", .interval = 1, .interval_minutes = 0}, clock);
  ASSERT_TRUE(schedule.Due(1));
  schedule.Failed();
  clock.Advance(absl::Seconds(29));
  EXPECT_FALSE(schedule.Due(2));
  clock.Advance(absl::Seconds(1));
  EXPECT_TRUE(schedule.Due(3));
  schedule.Saved();
  EXPECT_TRUE(schedule.Due(4));
}

}  // namespace
}  // namespace motley::engine
