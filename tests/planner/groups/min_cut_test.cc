#include "planner/groups/min_cut.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <random>

namespace motley::planner {
namespace {

EdgeWeights Empty(size_t n) { return EdgeWeights(n, std::vector<double>(n, 0)); }

void Join(EdgeWeights* w, size_t a, size_t b, double weight) { (*w)[a][b] = (*w)[b][a] = weight; }

double CutWeight(const EdgeWeights& w, uint32_t side) {
  double sum = 0;
  for (size_t a = 0; a < w.size(); ++a) {
    for (size_t b = a + 1; b < w.size(); ++b) {
      if (((side >> a) & 1) != ((side >> b) & 1)) sum += w[a][b];
    }
  }
  return sum;
}

// Reference: Stoer and Wagner, JACM'97, figure 1: the minimum cut of 4 splits {3, 4, 7, 8} from {1, 2, 5, 6}.
TEST(MinCut, ThePaperExample) {
  EdgeWeights w = Empty(8);
  const double edges[][3] = {{1, 2, 2}, {1, 5, 3}, {2, 3, 3}, {2, 5, 2}, {2, 6, 2}, {3, 4, 4},
                             {3, 7, 2}, {4, 7, 2}, {4, 8, 2}, {5, 6, 3}, {6, 7, 1}, {7, 8, 3}};
  for (const auto& e : edges) Join(&w, static_cast<size_t>(e[0]) - 1, static_cast<size_t>(e[1]) - 1, e[2]);
  std::vector<int> all(8);
  std::iota(all.begin(), all.end(), 0);
  const MinCut cut = FindMinCut(w, all);
  EXPECT_EQ(cut.weight, 4);
  EXPECT_TRUE(cut.side == std::vector<int>({2, 3, 6, 7}) || cut.side == std::vector<int>({0, 1, 4, 5}));
}

TEST(MinCut, EqualsBruteForce) {
  std::mt19937 random(7);
  for (int instance = 0; instance < 200; ++instance) {
    const size_t n = 2 + random() % 7;
    EdgeWeights w = Empty(n);
    for (size_t a = 0; a < n; ++a) {
      for (size_t b = a + 1; b < n; ++b) Join(&w, a, b, random() % 10);
    }
    double best = std::numeric_limits<double>::infinity();
    for (uint32_t side = 1; side + 1 < (1u << n); ++side) best = std::min(best, CutWeight(w, side));
    std::vector<int> all(n);
    std::iota(all.begin(), all.end(), 0);
    const MinCut cut = FindMinCut(w, all);
    EXPECT_EQ(cut.weight, best);
    uint32_t side = 0;
    for (int v : cut.side) side |= 1u << v;
    EXPECT_EQ(CutWeight(w, side), best);
    EXPECT_LT(cut.side.size(), n);
  }
}

TEST(MinCut, LooksAtTheGivenVerticesOnly) {
  EdgeWeights w = Empty(4);
  Join(&w, 0, 1, 1);
  Join(&w, 1, 2, 5);
  Join(&w, 2, 3, 0.1);
  const MinCut cut = FindMinCut(w, {0, 1, 2});
  EXPECT_EQ(cut.weight, 1);
  EXPECT_TRUE(cut.side == std::vector<int>({0}) || cut.side == std::vector<int>({1, 2}));
  EXPECT_EQ(FindMinCut(w, {1, 2}).weight, 5);
}

}  // namespace
}  // namespace motley::planner
