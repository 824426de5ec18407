#include "coordinator/state/copy_rate.h"

#include <gtest/gtest.h>

namespace motley::coordinator {
namespace {

void Steps(CopyRate& rate, int count, double seconds, bool copying) {
  for (int i = 0; i < count; ++i) rate.OnStep(seconds, copying);
}

TEST(CopyRate, AGenerationBeginsAnew) {
  CopyRate rate;
  Steps(rate, 20, 1.0, false);
  Steps(rate, 20, 2.0, true);
  EXPECT_EQ(rate.bytes_per_second(), 5'000'000);
  rate.Begin();
  EXPECT_EQ(rate.bytes_per_second(), 10'000'000);
  Steps(rate, 19, 2.0, true);
  EXPECT_EQ(rate.bytes_per_second(), 10'000'000) << "of the steps before nothing is known";
}

TEST(CopyRate, IsHalvedWhereStepsNoticeAndGrowsWhereTheyDoNot) {
  CopyRate rate;
  Steps(rate, 20, 1.0, false);
  Steps(rate, 19, 1.05, true);
  EXPECT_EQ(rate.bytes_per_second(), 10'000'000) << "too few";
  Steps(rate, 1, 1.05, true);
  EXPECT_EQ(rate.bytes_per_second(), 5'000'000);
  Steps(rate, 20, 1.015, true);
  EXPECT_EQ(rate.bytes_per_second(), 5'000'000) << "between the bounds it stays";
  Steps(rate, 20, 1.0, true);
  EXPECT_EQ(rate.bytes_per_second(), 7'500'000);
}

// A generation that begins with copies under way has no step without them: a few are made nearly without.
TEST(CopyRate, PausesToSeeWhatStepsTakeWithoutCopies) {
  CopyRate rate;
  Steps(rate, 19, 2.0, true);
  EXPECT_EQ(rate.bytes_per_second(), 10'000'000);
  Steps(rate, 1, 2.0, true);
  EXPECT_EQ(rate.bytes_per_second(), 64 << 10);
  Steps(rate, 4, 1.0, true);
  EXPECT_EQ(rate.bytes_per_second(), 64 << 10);
  Steps(rate, 1, 1.0, true);
  EXPECT_EQ(rate.bytes_per_second(), 5'000'000) << "they took twice as long with them";
}

// However long a link is bound by training, a copy ends some day.
TEST(CopyRate, NeverEnds) {
  CopyRate rate;
  Steps(rate, 20, 1.0, false);
  Steps(rate, 1000, 2.0, true);
  EXPECT_GE(rate.bytes_per_second(), 64 << 10);
}

}  // namespace
}  // namespace motley::coordinator
