// In whose shard an element is, between its owner and its uses.
#include "common/program/shard_ranges.h"

#include <algorithm>
#include <random>

#include "gtest/gtest.h"

namespace motley {
namespace {

// Two pipelines of two ranks each, of which the first cuts at 60 and the second at 30; every piece is halved between them.
TEST(ShardRangesTest, APieceThatPipelinesShareIsInOneShard) {
  const OwnedRanges owned = {{0, 0, 15}, {2, 15, 30}, {0, 30, 45}, {3, 45, 60}, {1, 60, 80}, {3, 80, 100}};
  EXPECT_EQ(ShardRanges(owned, {0, 1}), (OwnedRanges{{0, 0, 60}, {1, 60, 100}}));
  EXPECT_EQ(ShardRanges(owned, {3, 2}), (OwnedRanges{{2, 0, 30}, {3, 30, 100}}));
  EXPECT_EQ(ShardRanges(owned, {2}), (OwnedRanges{{2, 0, 100}}));
  EXPECT_EQ(ShardRanges(owned, {7, 5}), (OwnedRanges{{5, 0, 100}})) << "that own nothing";
  EXPECT_EQ(ShardRanges({}, {0, 1}), OwnedRanges());
}

// Whatever owns what: every element is in one shard, and what a rank owns in its own.
TEST(ShardRangesTest, ShardsHaveEverythingOnceAndWhatTheirRanksOwn) {
  std::mt19937 random(5);
  const auto below = [&random](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int n = 0; n < 2000; ++n) {
    OwnedRanges owned;
    const int ranks = 1 + below(7);
    for (int64_t i = 1 + below(12), begin = 0; i > 0; --i) {
      const int64_t end = begin + 1 + below(5);
      owned.push_back({below(ranks), begin, end});
      begin = end;
    }
    std::vector<int32_t> members;
    for (int32_t r = below(ranks), end = r + 1 + below(ranks - r); r < end; ++r) members.push_back(r);
    std::vector<int32_t> rank_of;
    for (const OwnedRange& range : ShardRanges(owned, members)) {
      ASSERT_EQ(range.begin, static_cast<int64_t>(rank_of.size()));
      ASSERT_LT(range.begin, range.end);
      ASSERT_NE(std::find(members.begin(), members.end(), range.rank), members.end());
      rank_of.resize(static_cast<size_t>(range.end), range.rank);
    }
    ASSERT_EQ(static_cast<int64_t>(rank_of.size()), owned.back().end);
    for (const OwnedRange& range : owned) {
      if (std::find(members.begin(), members.end(), range.rank) == members.end()) continue;
      for (int64_t i = range.begin; i < range.end; ++i) ASSERT_EQ(rank_of[static_cast<size_t>(i)], range.rank);
    }
  }
}

TEST(ShardRangesTest, RunsOfARankLieBehindEachOther) {
  const OwnedRanges shards = {{0, 0, 10}, {1, 10, 25}, {0, 25, 40}};
  EXPECT_EQ(RunsOfShard(0, {{shards, {{0, 0, 40}}}}), (std::vector<SliceRun>{{0, 0, 10}, {25, 10, 15}}));
  EXPECT_EQ(RunsOfShard(2, {{shards, {{0, 0, 40}}}}), std::vector<SliceRun>());
  // Of two slices' parts, the second shared out otherwise; what touches is one run.
  EXPECT_EQ(RunsOfShard(0, {{shards, {{0, 0, 5}, {30, 5, 5}}}, {{{0, 0, 40}}, {{35, 10, 5}}}}),
            (std::vector<SliceRun>{{0, 0, 5}, {30, 5, 10}}));
}

TEST(ShardRangesTest, RunsWithinAreThoseOfTheArraysElements) {
  const std::vector<SliceRun> runs = {{5, 0, 10}, {40, 10, 10}};
  EXPECT_EQ(RunsWithin(runs, ArrayRange()), runs);
  EXPECT_EQ(RunsWithin(runs, {8, 5}), (std::vector<SliceRun>{{13, 8, 2}, {40, 10, 3}}));
}

}  // namespace
}  // namespace motley
