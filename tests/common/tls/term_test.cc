#include "common/tls/term.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

constexpr char kOneId[] = "5e0c4b29bb5a7fbd", kOtherId[] = "0123456789abcdef";

TEST(TermTest, TheHigherNumberCountsWhateverTheId) {
  EXPECT_EQ(Compare({3, kOneId}, {2, kOtherId}), TermRelation::kHigher);
  EXPECT_EQ(Compare({2, kOneId}, {3, kOneId}), TermRelation::kLower);
  EXPECT_EQ(Compare({10, kOneId}, {9, kOneId}), TermRelation::kHigher) << "numbers, not texts";
  EXPECT_EQ(Compare({1, kOneId}, Term()), TermRelation::kHigher) << "where none is known";
}

TEST(TermTest, OfOneNumberTheIdTellsThemApart) {
  EXPECT_EQ(Compare({3, kOneId}, {3, kOneId}), TermRelation::kSame);
  EXPECT_EQ(Compare({3, kOneId}, {3, kOtherId}), TermRelation::kRival);
}

TEST(TermTest, NoTwoAreMadeAlike) {
  const auto one = NewTerm(4), other = NewTerm(4);
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_EQ(one->number, 4);
  EXPECT_EQ(one->id.size(), 16u);
  EXPECT_EQ(Compare(*one, *other), TermRelation::kRival);
}

}  // namespace
}  // namespace motley
