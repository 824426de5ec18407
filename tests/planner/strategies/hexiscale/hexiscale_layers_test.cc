#include "planner/strategies/hexiscale/hexiscale_layers.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <random>

#include "planner/strategies/proportional_layers.h"

namespace motley::planner {
namespace {

double BruteForce(const std::vector<StageCost>& stages, int64_t layers, int64_t microbatches) {
  double best = std::numeric_limits<double>::infinity();
  std::vector<int64_t> split(stages.size());
  const std::function<void(size_t, int64_t)> extend = [&](size_t j, int64_t left) {
    if (j + 1 == stages.size()) {
      split[j] = left;
      if (left >= 1 && left <= stages[j].most_layers) best = std::min(best, PipelineSeconds(stages, split, microbatches));
      return;
    }
    for (split[j] = 1; split[j] <= std::min(left, stages[j].most_layers); ++split[j]) extend(j + 1, left - split[j]);
  };
  extend(0, layers);
  return best;
}

TEST(HexiscaleLayers, EqualToBruteForce) {
  std::mt19937 random(11);
  for (int instance = 0; instance < 1500; ++instance) {
    std::vector<StageCost> stages(1 + random() % 4);
    for (StageCost& stage : stages) {
      stage = {0.1 * (1 + static_cast<double>(random() % 20)), 0.1 * static_cast<double>(random() % 10),
               1 + static_cast<int64_t>(random() % 8)};
    }
    const int64_t layers = 1 + static_cast<int64_t>(random() % 12), microbatches = 1 + static_cast<int64_t>(random() % 9);
    const LayerSplit split = SplitLayersExactly(stages, layers, microbatches);
    const double best = BruteForce(stages, layers, microbatches);
    if (best == std::numeric_limits<double>::infinity()) {
      EXPECT_TRUE(split.layers.empty());
      continue;
    }
    ASSERT_FALSE(split.layers.empty()) << instance;
    EXPECT_NEAR(split.seconds, best, 1e-9 * best) << instance;
    EXPECT_NEAR(PipelineSeconds(stages, split.layers, microbatches), split.seconds, 1e-12);
  }
}

// Equation 9 as printed would see a pipeline of a slow first stage as fast; the corrected one does not.
TEST(HexiscaleLayers, TheFirstStageCounts) {
  const std::vector<StageCost> stages = {{1, 0, 100}, {1, 0, 100}};
  EXPECT_EQ(SplitLayersExactly(stages, 10, 50).layers, std::vector<int64_t>({5, 5}));
  EXPECT_EQ(PipelineSeconds(stages, {9, 1}, 50), 10 + 49 * 9);
}

TEST(HexiscaleLayers, MemoryAndTooManyStages) {
  EXPECT_EQ(SplitLayersExactly({{1, 0, 3}, {5, 0, 100}}, 10, 4).layers, std::vector<int64_t>({3, 7}));
  EXPECT_TRUE(SplitLayersExactly({{1, 0, 3}, {1, 0, 3}}, 10, 4).layers.empty());
  EXPECT_TRUE(SplitLayersExactly({{1, 0, 0}, {1, 0, 30}}, 10, 4).layers.empty());
  EXPECT_TRUE(SplitLayersExactly({{1, 0, 9}, {1, 0, 9}, {1, 0, 9}}, 2, 4).layers.empty());
}

TEST(ProportionalLayers, LargestRemaindersAtLeastOne) {
  EXPECT_EQ(ProportionalLayers(10, {1, 1, 2}), std::vector<int64_t>({3, 2, 5}));
  EXPECT_EQ(ProportionalLayers(4, {100, 1, 1, 1}), std::vector<int64_t>({1, 1, 1, 1}));
  EXPECT_EQ(ProportionalLayers(6, {100, 1, 1, 1}), std::vector<int64_t>({3, 1, 1, 1}));
  EXPECT_TRUE(ProportionalLayers(2, {1, 1, 1}).empty());
}

}  // namespace
}  // namespace motley::planner
