#include "planner/util/quantity_text.h"

#include <gtest/gtest.h>

namespace motley::planner {
namespace {

TEST(QuantityTextTest, ChangesHaveNoSignAndNoZero) {
  EXPECT_EQ(ChangeText(0.048, "faster", "slower"), "4.8 % faster");
  EXPECT_EQ(ChangeText(-0.02, "faster", "slower"), "2.0 % slower");
  for (const double part : {0.0, -0.0, 0.0004, -0.0004}) EXPECT_EQ(ChangeText(part, "more", "less"), "no difference") << part;
  EXPECT_EQ(ChangeText(0.0006, "more", "less"), "0.1 % more");
}

TEST(QuantityTextTest, LargeCountsAreMillions) {
  EXPECT_EQ(CountText(718.4e6), "718 M");
  EXPECT_EQ(CountText(7.184e9), "7184 M");
  EXPECT_EQ(CountText(7.18e6), "7.2 M");
  EXPECT_EQ(CountText(71800), "71800");
}

}  // namespace
}  // namespace motley::planner
