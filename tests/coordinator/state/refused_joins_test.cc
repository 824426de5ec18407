#include "coordinator/state/refused_joins.h"

#include <gtest/gtest.h>

namespace motley::coordinator {
namespace {

constexpr absl::Duration kFirstTry = absl::Seconds(100);

void RefuseTimes(RefusedJoins& joins, const std::string& host, int times, absl::Duration now) {
  for (int i = 0; i < times; ++i) joins.Note(host, now);
}

TEST(RefusedJoins, TheEleventhInASecondIsTooEager) {
  RefusedJoins joins;
  EXPECT_FALSE(joins.IsTooEager("10.0.0.2", kFirstTry)) << "never seen";
  for (int i = 0; i < RefusedJoins::kMostInASecond; ++i) {
    const absl::Duration now = kFirstTry + absl::Milliseconds(10 * i);
    EXPECT_FALSE(joins.IsTooEager("10.0.0.2", now)) << i;
    joins.Note("10.0.0.2", now);
  }
  EXPECT_TRUE(joins.IsTooEager("10.0.0.2", kFirstTry + absl::Milliseconds(100)));
  EXPECT_TRUE(joins.IsTooEager("10.0.0.2", kFirstTry + absl::Milliseconds(999)));
  EXPECT_FALSE(joins.IsTooEager("10.0.0.3", kFirstTry + absl::Milliseconds(999))) << "another one";
}

TEST(RefusedJoins, ItIsOverWithTheSecond) {
  RefusedJoins joins;
  RefuseTimes(joins, "10.0.0.2", 50, kFirstTry);
  const absl::Duration next = kFirstTry + absl::Seconds(1);
  EXPECT_FALSE(joins.IsTooEager("10.0.0.2", next));
  RefuseTimes(joins, "10.0.0.2", RefusedJoins::kMostInASecond - 1, next);
  EXPECT_FALSE(joins.IsTooEager("10.0.0.2", next)) << "counted anew";
  RefuseTimes(joins, "10.0.0.2", 1, next + absl::Milliseconds(500));
  EXPECT_TRUE(joins.IsTooEager("10.0.0.2", next + absl::Milliseconds(999)));
  EXPECT_FALSE(joins.IsTooEager("10.0.0.2", next + absl::Seconds(1)));
}

TEST(RefusedJoins, WhoTriesNowAndThenIsListenedTo) {
  RefusedJoins joins;
  for (int i = 0; i < 100; ++i) {
    const absl::Duration now = kFirstTry + absl::Milliseconds(200 * i);
    EXPECT_FALSE(joins.IsTooEager("10.0.0.2", now)) << i;
    joins.Note("10.0.0.2", now);
  }
}

TEST(RefusedJoins, PeopleAreToldOnceAMinute) {
  RefusedJoins joins;
  EXPECT_TRUE(joins.Note("10.0.0.2", kFirstTry));
  EXPECT_TRUE(joins.Note("10.0.0.3", kFirstTry)) << "another one";
  for (int second = 1; second < 60; ++second) {
    EXPECT_FALSE(joins.Note("10.0.0.2", kFirstTry + absl::Seconds(second))) << second;
  }
  EXPECT_TRUE(joins.Note("10.0.0.2", kFirstTry + absl::Minutes(1)));
  EXPECT_FALSE(joins.Note("10.0.0.2", kFirstTry + absl::Seconds(119)));
  EXPECT_TRUE(joins.Note("10.0.0.2", kFirstTry + absl::Minutes(2)));
}

// Addresses are cheap: what is remembered of them must not grow with them.
TEST(RefusedJoins, OfManyHostsTheNewestAreRemembered) {
  RefusedJoins joins;
  joins.Note("first", kFirstTry);
  EXPECT_FALSE(joins.Note("first", kFirstTry)) << "remembered";
  absl::Duration now = kFirstTry;
  int said = 0;
  for (int i = 0; i < 2000; ++i) {
    now += absl::Milliseconds(1);
    said += joins.Note("host " + std::to_string(i), now);
  }
  EXPECT_EQ(said, 9) << "of ten addresses a minute, the first one among them";
  now += absl::Seconds(58);
  EXPECT_TRUE(joins.Note("first", now)) << "the next minute";
  // Who is held now is not set free by the others.
  RefuseTimes(joins, "eager", RefusedJoins::kMostInASecond, now);
  for (int i = 0; i < 100; ++i) joins.Note("other " + std::to_string(i), now + absl::Milliseconds(i));
  EXPECT_TRUE(joins.IsTooEager("eager", now + absl::Milliseconds(100)));
}

}  // namespace
}  // namespace motley::coordinator
