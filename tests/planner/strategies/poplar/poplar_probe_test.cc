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

TEST(PoplarProbeTest, ASearchOfADeviceTakesAtMost19TrialsAndSaysHowManyAreLeft) {
  constexpr int64_t kMost = 512;
  EXPECT_EQ(BatchSearch(kMost).MostLeft(), 18);
  for (int64_t limit = 0; limit <= 600; ++limit) {
    BatchSearch search(kMost);
    int tried = 0;
    for (int64_t batch = search.Next(); batch > 0; batch = search.Next(), ++tried) {
      const int left = search.MostLeft();
      search.Take(batch <= limit);
      EXPECT_LE(search.MostLeft(), left - 1) << batch << " of " << limit;
    }
    EXPECT_EQ(search.largest(), std::min(limit, kMost));
    EXPECT_EQ(search.MostLeft(), 0);
    EXPECT_LE(tried, 19);
  }
}

}  // namespace
}  // namespace motley::planner
