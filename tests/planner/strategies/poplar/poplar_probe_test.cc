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

}  // namespace
}  // namespace motley::planner
