#include "planner/strategies/poplar/poplar_probe.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace motley::planner {
namespace {

TEST(PoplarProbeTest, FindsEveryLimitAndTriesFewBatches) {
  for (int64_t limit = 0; limit <= 300; ++limit) {
    int tried = 0;
    const auto fits = [&](int64_t batch) {
      ++tried;
      return batch <= limit;
    };
    const PoplarProbe probe = ProbeLargestBatch(fits, 256);
    EXPECT_EQ(probe.largest, std::min<int64_t>(limit, 256));
    EXPECT_LE(tried, 18);
    EXPECT_TRUE(std::is_sorted(probe.batches.begin(), probe.batches.end()));
    EXPECT_EQ(probe.batches.empty() ? 0 : probe.batches.back(), probe.largest);
  }
}

TEST(PoplarProbeTest, TheSplineMeetsItsPointsAndNeverFalls) {
  const auto seconds = [](int64_t b) { return 1.0 + 0.1 * static_cast<double>(b * b); };
  const PoplarProbe probe = ProbeLargestBatch([](int64_t b) { return b <= 23; }, 64);
  const std::vector<double> table = SecondsBySpline(probe, seconds);
  ASSERT_EQ(table.size(), 24u);
  for (const int64_t b : probe.batches) EXPECT_NEAR(table[b], seconds(b), 1e-9);
  EXPECT_TRUE(std::is_sorted(table.begin(), table.end()));
  EXPECT_TRUE(SecondsBySpline(PoplarProbe(), seconds).empty());
}

}  // namespace
}  // namespace motley::planner
