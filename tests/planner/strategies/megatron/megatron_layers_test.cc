#include "planner/strategies/megatron/megatron_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

namespace motley::planner {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

double Slowest(const std::vector<StageSpeed>& stages, const std::vector<int64_t>& counts) {
  double slowest = 0;
  for (size_t s = 0; s < stages.size(); ++s) {
    slowest = std::max(slowest, stages[s].extra_seconds + stages[s].seconds_per_layer * static_cast<double>(counts[s]));
  }
  return slowest;
}

double Brute(const std::vector<StageSpeed>& stages, int64_t layers) {
  double best = std::numeric_limits<double>::infinity();
  std::vector<int64_t> counts;
  const std::function<void(int64_t)> choose = [&](int64_t rest) {
    if (counts.size() == stages.size()) {
      if (rest == 0) best = std::min(best, Slowest(stages, counts));
      return;
    }
    const StageSpeed& stage = stages[counts.size()];
    for (int64_t n = stage.least_layers; n <= std::min(rest, stage.most_layers); ++n) {
      counts.push_back(n);
      choose(rest - n);
      counts.pop_back();
    }
  };
  choose(layers);
  return best;
}

TEST(BalanceLayersTest, AgreesWithBruteForce) {
  std::mt19937 random(5);
  const auto pick = [&](int low, int high) { return static_cast<int>(random() % static_cast<unsigned>(high - low + 1)) + low; };
  int feasible = 0;
  for (int instance = 0; instance < 3000; ++instance) {
    std::vector<StageSpeed> stages;
    for (int s = pick(1, 4); s > 0; --s) {
      stages.push_back({0.1 * pick(1, 20), 0.1 * pick(0, 30), pick(0, 3), pick(0, 9)});
    }
    const int64_t layers = pick(1, 14);
    const double brute = Brute(stages, layers);
    const std::vector<int64_t> counts = BalanceLayers(stages, layers);
    ASSERT_EQ(counts.empty(), brute == std::numeric_limits<double>::infinity()) << "instance " << instance;
    if (counts.empty()) continue;
    ++feasible;
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), int64_t{0}), layers);
    for (size_t s = 0; s < stages.size(); ++s) {
      EXPECT_GE(counts[s], stages[s].least_layers);
      EXPECT_LE(counts[s], stages[s].most_layers);
    }
    EXPECT_NEAR(Slowest(stages, counts), brute, 1e-9) << "instance " << instance;
  }
  EXPECT_GT(feasible, 1000);
}

TEST(BalanceLayersTest, FasterStagesTakeMoreAndMemoryLimits) {
  EXPECT_THAT(BalanceLayers({{1, 0, 1, 30}, {2, 0, 1, 30}}, 12), ElementsAre(8, 4));
  EXPECT_THAT(BalanceLayers({{1, 0, 1, 5}, {2, 0, 1, 30}}, 12), ElementsAre(5, 7));
  EXPECT_THAT(BalanceLayers({{1, 0, 1, 5}, {2, 0, 1, 6}}, 12), IsEmpty());
}

}  // namespace
}  // namespace motley::planner
