// Which piece goes first.
#include "planner/lowering/hand_over_order.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace motley::planner {
namespace {

using testing::IsEmpty;

ComingPiece Piece(int32_t sender, int32_t receiver, int64_t first, int64_t samples, int64_t microbatch = 0) {
  return {false, 1, 1, microbatch, 0, sender, receiver, first, samples};
}
// "0>3 1>3": of sender 0 to rank 3, ...
std::string Text(const std::vector<ComingPiece>& pieces) {
  std::string text;
  for (const ComingPiece& piece : pieces) absl::StrAppend(&text, text.empty() ? "" : " ", piece.sender, ">", piece.receiver);
  return text;
}

// Three samples each, two samples each: no link is idle before it is done.
TEST(HandOverOrderTest, TwoSendersAndThreeReceiversUseAllLinks) {
  HandOverOrder order;
  EXPECT_THAT(order.Add(Piece(0, 2, 0, 2), 0, 6), IsEmpty());
  EXPECT_THAT(order.Add(Piece(0, 3, 2, 1), 0, 6), IsEmpty());
  EXPECT_THAT(order.Add(Piece(1, 3, 3, 1), 0, 6), IsEmpty());
  EXPECT_EQ(Text(order.Add(Piece(1, 4, 4, 2), 0, 6)), "1>3 0>2 1>4 0>3");
  EXPECT_THAT(order.All(), IsEmpty());
}

TEST(HandOverOrderTest, ASenderWithMoreToSendWaitsForNobody) {
  HandOverOrder order;
  order.Add(Piece(0, 9, 0, 1), 0, 3);
  order.Add(Piece(1, 9, 1, 1), 0, 3);
  EXPECT_THAT(order.WithSender(2), IsEmpty());
  EXPECT_EQ(Text(order.WithSender(0)), "1>9 0>9");
  EXPECT_THAT(order.WithSender(1), IsEmpty());
  EXPECT_EQ(Text(order.Add(Piece(2, 9, 2, 1), 0, 3)), "2>9");  // the last of its round
  EXPECT_THAT(order.Add(Piece(0, 9, 3, 1), 1, 2), IsEmpty());
  EXPECT_EQ(Text(order.All()), "0>9");
}

// A microbatch that is needed first comes first.
TEST(HandOverOrderTest, MicrobatchesOfOneReceiverKeepTheirOrder) {
  HandOverOrder order;
  order.Add(Piece(0, 9, 0, 1, 0), 0, 2);
  EXPECT_EQ(Text(order.Add(Piece(1, 9, 1, 1, 1), 0, 2)), "0>9 1>9");
}

// 8 is busy with three samples of 1.
TEST(HandOverOrderTest, ASenderWhoseReceiverIsBusySendsWhatIsOverByThen) {
  for (const int64_t samples : {1, 3, 4}) {
    HandOverOrder order;
    order.Add(Piece(0, 8, 0, 2), 0, 5 + samples);
    order.Add(Piece(0, 9, 2, samples), 0, 5 + samples);
    EXPECT_EQ(Text(order.Add(Piece(1, 8, 2 + samples, 3), 0, 5 + samples)), samples <= 3 ? "1>8 0>9 0>8" : "1>8 0>8 0>9");
  }
}

// 1 has sent more than 0 in it. Without that the last sample would be first.
TEST(HandOverOrderTest, WhatALaneStillHasToDoForTheRoundBeforeCounts) {
  HandOverOrder order;
  order.Add(Piece(0, 7, 0, 2), 0, 6);
  order.Add(Piece(1, 8, 2, 4), 0, 6);
  order.Add(Piece(0, 9, 6, 1), 1, 2);
  EXPECT_EQ(Text(order.Add(Piece(1, 9, 7, 1), 1, 2)), "0>9 1>9");
}

}  // namespace
}  // namespace motley::planner
