#include "planner/groups/split_cut.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <random>

namespace motley::planner {
namespace {

double Between(const EdgeWeights& w, const std::vector<int>& part_of) {
  double sum = 0;
  for (size_t a = 0; a < w.size(); ++a) {
    for (size_t b = a + 1; b < w.size(); ++b) {
      if (part_of[a] != part_of[b]) sum += w[a][b];
    }
  }
  return sum;
}

double Between(const EdgeWeights& w, const Parts& parts) {
  std::vector<int> part_of(w.size());
  for (size_t p = 0; p < parts.size(); ++p) {
    for (int v : parts[p]) part_of[v] = static_cast<int>(p);
  }
  return Between(w, part_of);
}

double Lightest(const EdgeWeights& w, int k) {
  double best = std::numeric_limits<double>::infinity();
  std::vector<int> part_of(w.size(), 0);
  const std::function<void(size_t, int)> extend = [&](size_t v, int used) {
    if (v == w.size()) {
      if (used == k) best = std::min(best, Between(w, part_of));
      return;
    }
    for (int p = 0; p < std::min(used + 1, k); ++p) {
      part_of[v] = p;
      extend(v + 1, std::max(used, p + 1));
    }
  };
  extend(0, 0);
  return best;
}

// Reference: Saran and Vazirani 1995, theorem: SPLIT is within 2 - 2/k of the lightest k-cut.
TEST(SplitCuts, WithinTheBoundForEveryK) {
  std::mt19937 random(3);
  for (int instance = 0; instance < 40; ++instance) {
    const size_t n = 3 + random() % 5;
    EdgeWeights w(n, std::vector<double>(n, 0));
    for (size_t a = 0; a < n; ++a) {
      for (size_t b = a + 1; b < n; ++b) w[a][b] = w[b][a] = 1 + random() % 20;
    }
    const std::vector<Parts> cuts = SplitCuts(w, static_cast<int>(n));
    ASSERT_EQ(cuts.size(), n);
    for (size_t k = 1; k <= n; ++k) {
      ASSERT_EQ(cuts[k - 1].size(), k);
      size_t vertices = 0;
      for (const std::vector<int>& part : cuts[k - 1]) vertices += part.size();
      EXPECT_EQ(vertices, n);
      EXPECT_LE(Between(w, cuts[k - 1]), (2 - 2.0 / static_cast<double>(k)) * Lightest(w, static_cast<int>(k)) + 1e-9);
    }
  }
}

// Why groupings.h exists: two nodes of 4 GPUs, 1 GB/s between any two of different nodes. Cutting the nodes apart costs 16.
// Cutting off one GPU costs 4 and three links inside: 64 in all at 20 GB/s inside, but 13 at 3 GB/s.
TEST(SplitCuts, PeelsSingleDevicesWhereLinksInsideAreNotMuchFaster) {
  const auto rates = [](double inside) {
    EdgeWeights w(8, std::vector<double>(8, 1));
    for (size_t a = 0; a < 8; ++a) {
      for (size_t b = 0; b < 8; ++b) {
        if (a / 4 == b / 4) w[a][b] = inside;
      }
    }
    return w;
  };
  EXPECT_EQ(SplitCuts(rates(20), 2)[1], Parts({{0, 1, 2, 3}, {4, 5, 6, 7}}));
  const Parts peeled = SplitCuts(rates(3), 2)[1];
  EXPECT_EQ(std::min(peeled[0].size(), peeled[1].size()), 1u);
}

TEST(SplitCuts, NothingAskedNothingGiven) {
  EXPECT_TRUE(SplitCuts({}, 3).empty());
  EXPECT_TRUE(SplitCuts({{0}}, 0).empty());
  EXPECT_EQ(SplitCuts({{0}}, 5).size(), 1u);
}

}  // namespace
}  // namespace motley::planner
