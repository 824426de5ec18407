#include "coordinator/state/same_news.h"

#include <gtest/gtest.h>

namespace motley::coordinator {
namespace {

TEST(SameNewsTest, NumbersAreNoNews) {
  EXPECT_TRUE(IsSameButNumbers("", ""));
  EXPECT_TRUE(IsSameButNumbers("training", "training"));
  EXPECT_TRUE(IsSameButNumbers("in 15 of 15 steps all waited, and steps take 13 s, predicted 3 s; queued for 4",
                               "in 188 of 200 steps all waited, and steps take 1.2e+02 s, predicted 3 s; queued for 5"));
  EXPECT_TRUE(IsSameButNumbers("at 3%, of 7: 4.5; 2)", "at 12%, of 8: 4; 3)"));
}

TEST(SameNewsTest, WordsAndNamesAre) {
  for (const auto& [a, b] : {std::pair{"b/gpu0 slows the job down", "b/gpu1 slows the job down"}, std::pair{"3 s", "3 s; more"},
                             std::pair{"", "training"}, std::pair{"n 1", "n one"}, std::pair{"3, then", "3; then"},
                             std::pair{"node 1a", "node 2a"}, std::pair{"3 ,", "3 ;"}}) {
    EXPECT_FALSE(IsSameButNumbers(a, b)) << a << " | " << b;
    EXPECT_FALSE(IsSameButNumbers(b, a)) << a << " | " << b;
  }
}

}  // namespace
}  // namespace motley::coordinator
