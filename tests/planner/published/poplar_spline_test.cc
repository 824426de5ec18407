#include "planner/published/poplar_spline.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace motley::planner {
namespace {

TEST(PoplarSplineTest, MeetsItsPointsAndNeverFalls) {
  const auto seconds = [](int64_t b) { return 1.0 + 0.1 * static_cast<double>(b * b); };
  const std::vector<int64_t> probed = {1, 2, 4, 8, 16, 20, 22, 23};
  const std::vector<double> table = SecondsBySpline(probed, seconds);
  ASSERT_EQ(table.size(), 24u);
  for (const int64_t b : probed) EXPECT_NEAR(table[b], seconds(b), 1e-9);
  EXPECT_TRUE(std::is_sorted(table.begin(), table.end()));
  EXPECT_TRUE(SecondsBySpline({}, seconds).empty());
}

}  // namespace
}  // namespace motley::planner
