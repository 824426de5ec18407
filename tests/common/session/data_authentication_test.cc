#include "common/session/data_authentication.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "common/session/rank_build.h"

namespace motley {
namespace {

constexpr DataAuthentication kAll[] = {DataAuthentication::kBetweenMachines, DataAuthentication::kAlways,
                                       DataAuthentication::kNever};

TEST(DataAuthenticationTest, EachHasAName) {
  for (const DataAuthentication value : kAll) EXPECT_EQ(ParseDataAuthentication(DataAuthenticationName(value)), value);
  EXPECT_FALSE(ParseDataAuthentication("off"));
  EXPECT_FALSE(ParseDataAuthentication(""));
}

TEST(DataAuthenticationTest, BetweenMachinesIsWhatLeavesOne) {
  const struct {
    const char *one, *other;
    bool leaves;
  } kPairs[] = {{"127.0.0.1", "127.0.0.1", false}, {"127.0.0.1", "127.0.0.2", false}, {"::1", "127.0.0.1", false},
                {"10.0.0.1", "10.0.0.1", false},   {"10.0.0.1", "10.0.0.2", true},    {"127.0.0.1", "10.0.0.2", true},
                {"fd00::1", "fd00::2", true}};
  for (const auto& [one, other, leaves] : kPairs) {
    for (const auto& [a, b] : {std::pair(one, other), std::pair(other, one)}) {
      EXPECT_EQ(Authenticates(DataAuthentication::kBetweenMachines, a, b), leaves) << a << " " << b;
      EXPECT_TRUE(Authenticates(DataAuthentication::kAlways, a, b));
      EXPECT_FALSE(Authenticates(DataAuthentication::kNever, a, b));
    }
  }
}

TEST(DataAuthenticationTest, NodesThatWouldNotMeetAreOfTwoBuilds) {
  const std::string with = RankBuildOfNode(DataAuthentication::kBetweenMachines, "10.0.0.1");
  EXPECT_EQ(RankBuildOfNode(DataAuthentication::kAlways, "10.0.0.2"), with);
  const std::string without = RankBuildOfNode(DataAuthentication::kNever, "10.0.0.3");
  EXPECT_NE(without, with);
  EXPECT_LT(without, with) << "of two with as many nodes the last by name trains";
  EXPECT_EQ(RankBuildOfNode(DataAuthentication::kNever, "127.0.0.1"), with) << "there they mean the same";
}

}  // namespace
}  // namespace motley
