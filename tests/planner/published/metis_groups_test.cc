#include "planner/published/metis_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace motley::planner {
namespace {

// Eight devices in pairs: 10 inside, 1 between.
EdgeWeights Pairs() {
  EdgeWeights rates(8, std::vector<double>(8, 1));
  for (size_t a = 0; a < 8; ++a) rates[a][a ^ 1] = 10;
  return rates;
}

std::vector<int> Eight() {
  std::vector<int> devices(8);
  std::iota(devices.begin(), devices.end(), 0);
  return devices;
}

TEST(MetisGroups, FromTwoGroupsToOneLessThanThePieces) {
  const Parts pieces = {{0, 1}, {2, 3}, {4, 5}, {6, 7}};
  const std::vector<std::vector<Parts>> groupings = MetisGroups(Pairs(), Eight(), pieces);
  ASSERT_EQ(groupings.size(), 2u);
  EXPECT_EQ(groupings[0].size(), 2u);
  EXPECT_EQ(groupings[1].size(), 3u);
  for (const Parts& group : groupings[0]) EXPECT_EQ(group.size(), 2u) << "pairs are not divided";
  EXPECT_TRUE(MetisGroups(Pairs(), Eight(), {Eight()}).empty()) << "there is no grouping beside the one piece";
}

TEST(MetisGroups, EachDeviceIsInOneRunOfItsPiece) {
  const Parts pieces = {{0, 1, 2}, {3, 4, 5}, {6}, {7}};
  for (const std::vector<Parts>& groups : MetisGroups(Pairs(), Eight(), pieces)) {
    std::vector<int> all;
    for (const Parts& runs : groups) {
      for (const std::vector<int>& run : runs) {
        all.insert(all.end(), run.begin(), run.end());
        EXPECT_EQ(run.back() - run.front() + 1, static_cast<int>(run.size()));
        const auto holds = [&](const std::vector<int>& piece) {
          return std::includes(piece.begin(), piece.end(), run.begin(), run.end());
        };
        EXPECT_TRUE(std::any_of(pieces.begin(), pieces.end(), holds));
      }
    }
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, Eight());
  }
}

}  // namespace
}  // namespace motley::planner
