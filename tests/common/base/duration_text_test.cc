#include "common/base/duration_text.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

TEST(DurationTextTest, OneStyle) {
  EXPECT_EQ(DurationText(absl::ZeroDuration()), "0 s");
  EXPECT_EQ(DurationText(absl::Milliseconds(250)), "250 ms");
  EXPECT_EQ(DurationText(absl::Microseconds(30)), "0.03 ms");
  EXPECT_EQ(DurationText(absl::Seconds(5)), "5 s");
  EXPECT_EQ(DurationText(absl::Milliseconds(1500)), "1.5 s");
  EXPECT_EQ(DurationText(absl::Milliseconds(59'400)), "59.4 s");
  EXPECT_EQ(DurationText(absl::Milliseconds(59'600)), "1 min");
  EXPECT_EQ(DurationText(absl::Seconds(266)), "4 min 26 s");
  EXPECT_EQ(DurationText(absl::Seconds(305)), "5 min 05 s");
  EXPECT_EQ(DurationText(absl::Minutes(125)), "2 h 05 min");
  EXPECT_EQ(DurationText(absl::Hours(12)), "12 h");
  EXPECT_EQ(DurationText(absl::Hours(47)), "47 h");
  EXPECT_EQ(DurationText(absl::Hours(24 * 90)), "90 d");
  EXPECT_EQ(DurationText(-absl::Seconds(3)), "-3 s");
  EXPECT_EQ(DurationText(absl::InfiniteDuration()), "for ever");
}

}  // namespace
}  // namespace motley
