#include "planner/strategies/poplar/poplar_cover.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley::planner {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(CheapestCoverTest, CoversWithOverlap) {
  const CheapestCover cover({{1, 1.0}, {3, 2.0}}, 7);
  EXPECT_DOUBLE_EQ(cover.Seconds(2), 2.0);
  EXPECT_DOUBLE_EQ(cover.Seconds(4), 3.0);
  EXPECT_DOUBLE_EQ(cover.Seconds(6), 4.0);
  EXPECT_DOUBLE_EQ(cover.Seconds(7), 5.0);
  EXPECT_THAT(cover.Pieces(7), ElementsAre(1, 1, 0));
  EXPECT_THAT(cover.Pieces(0), IsEmpty());
}

}  // namespace
}  // namespace motley::planner
