#include "common/checkpoint/block_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace motley {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

class BlockPartsTest : public ::testing::Test {
 protected:
  BlockParts Of(std::vector<int64_t> numbers) {
    return BlockParts(std::move(numbers), 4, [this](int64_t block, std::string_view bytes) {
      taken_.emplace_back(block, bytes);
      return verdict_;
    });
  }
  std::vector<std::pair<int64_t, std::string>> taken_;
  absl::Status verdict_;
};

TEST_F(BlockPartsTest, PutsPartsTogether) {
  BlockParts parts = Of({7, 2, 9});
  ASSERT_TRUE(parts.Add(7, "ab").ok());
  EXPECT_TRUE(taken_.empty());
  ASSERT_TRUE(parts.Add(7, "cd").ok());
  EXPECT_THAT(taken_, ElementsAre(Pair(7, "abcd"))) << "with its last byte";
  ASSERT_TRUE(parts.Add(2, "e").ok());
  ASSERT_TRUE(parts.Add(9, "f").ok());
  EXPECT_THAT(taken_, ElementsAre(Pair(7, "abcd"), Pair(2, "e"))) << "a short one with the next one's first";
  ASSERT_TRUE(parts.Finish().ok());
  EXPECT_THAT(taken_, ElementsAre(Pair(7, "abcd"), Pair(2, "e"), Pair(9, "f")));
}

TEST_F(BlockPartsTest, TakesNothingElse) {
  EXPECT_EQ(Of({1}).Add(2, "a").message(), "sends block 2 instead of 1");
  EXPECT_EQ(Of({1}).Add(1, "").message(), "sends a part of block 1 without bytes");
  EXPECT_EQ(Of({1}).Add(1, "abcde").message(), "sends more of block 1 than the 4 bytes that one has");
  BlockParts more = Of({1});
  ASSERT_TRUE(more.Add(1, "abcd").ok());
  EXPECT_EQ(more.Add(1, "e").message(), "sends more than the blocks that were asked for");
  BlockParts fewer = Of({1, 2});
  ASSERT_TRUE(fewer.Add(1, "ab").ok());
  EXPECT_EQ(fewer.Finish().message(), "sends 1 blocks of 2");
  EXPECT_EQ(Of({1}).Finish().message(), "sends 0 blocks of 1");
  EXPECT_TRUE(absl::IsDataLoss(Of({1}).Finish()));
}

TEST_F(BlockPartsTest, WhatIsSaidOfABlockEndsIt) {
  verdict_ = absl::ResourceExhaustedError("the disk is full");
  EXPECT_EQ(Of({1}).Add(1, "abcd"), verdict_);
  BlockParts last = Of({1});
  ASSERT_TRUE(last.Add(1, "a").ok());
  EXPECT_EQ(last.Finish(), verdict_);
}

}  // namespace
}  // namespace motley
