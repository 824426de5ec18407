#include "coordinator/state/ways.h"

#include <gtest/gtest.h>

#include <set>

namespace motley::coordinator {
namespace {

std::vector<NodeName> Nodes(int n) {
  std::vector<NodeName> nodes;
  for (int i = 0; i < n; ++i) nodes.push_back(NodeName("n" + std::to_string(i)));
  return nodes;
}

// Every way of the rounds, none of them twice; no node twice in a round.
std::set<Way> Collect(const std::vector<Round>& rounds) {
  std::set<Way> ways;
  for (const Round& round : rounds) {
    std::set<NodeName> busy;
    for (const Way& way : round) {
      EXPECT_TRUE(ways.insert(way).second) << way.first << " " << way.second;
      EXPECT_TRUE(busy.insert(way.first).second && busy.insert(way.second).second) << way.first << " " << way.second;
    }
  }
  return ways;
}

TEST(Ways, RoundsAreDisjointAndCoverEveryOrderedPairOnce) {
  for (int n = 0; n <= 17; ++n) {
    const std::vector<Round> rounds = AllWays(Nodes(n));
    EXPECT_EQ(Collect(rounds).size(), static_cast<size_t>(n * std::max(0, n - 1))) << n;
    EXPECT_EQ(rounds.size(), static_cast<size_t>(n < 2 ? 0 : n % 2 == 0 ? 2 * (n - 1) : 2 * n)) << n;
  }
}

TEST(Ways, ARingLeadsFromEachToTheNext) {
  for (int n = 0; n <= 9; ++n) {
    const std::vector<NodeName> nodes = Nodes(n);
    const std::vector<Round> rounds = RingWays(nodes);
    std::set<Way> expected;
    for (int i = 0; n > 1 && i < n; ++i) expected.emplace(nodes[i], nodes[(i + 1) % n]);
    EXPECT_EQ(Collect(rounds), expected) << n;
    EXPECT_LE(rounds.size(), 3u);
  }
}

}  // namespace
}  // namespace motley::coordinator
