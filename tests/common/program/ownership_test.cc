#include "common/program/ownership.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

TEST(OwnershipTest, LikeBlocksAreStoredOnceWhereverTheyAre) {
  Ownership ownership;
  const OwnedRanges even = {{0, 0, 5}, {1, 5, 10}}, one = {{1, 0, 4}};
  for (const OwnedRanges& ranges : {one, even, even, one, even}) ownership.Add(ranges);
  const std::vector<Ownership::Alike> alike = ownership.AlikeBlocks();
  ASSERT_EQ(alike.size(), 2u);
  EXPECT_EQ(alike[0].blocks, (std::vector<BlockSpan>{{0, 0}, {3, 3}}));
  EXPECT_EQ(alike[1].blocks, (std::vector<BlockSpan>{{1, 2}, {4, 4}}));
  EXPECT_EQ(*alike[1].ranges, even);
  EXPECT_EQ(ownership.num_blocks(), 5);
  EXPECT_EQ(ownership.NumElements(0), 4);
  EXPECT_EQ(ownership.NumOwned(4, 1), 5);
  EXPECT_EQ(ownership.NumOwned(0, 0), 0);
  EXPECT_EQ(ownership.NumOwnedByRank(3), (std::vector<double>{15, 4 + 5 + 5 + 4 + 5, 0}));
}

TEST(OwnershipTest, NeighboursOfOneRankBecomeOneAndEmptyOnesNone) {
  Ownership ownership;
  ownership.Add({{0, 0, 0}, {2, 0, 3}, {2, 3, 5}, {1, 5, 5}, {2, 5, 6}, {0, 6, 9}});
  EXPECT_EQ(ownership.Of(0), (OwnedRanges{{2, 0, 6}, {0, 6, 9}}));
}

}  // namespace
}  // namespace motley
