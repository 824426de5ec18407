// What searches take plans with tensor-parallel stages to need, and what they need as they run.
#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "planner/plan/each_rank.h"
#include "planner/pricing/evaluate.h"
#include "planner/pricing/price.h"
#include "tests/planner/lowering/tensor_parallel_plans.h"

namespace motley::planner {
namespace {

std::vector<double> PeaksOf(const Plan& plan) {
  std::vector<double> peaks;
  ForEachRank(plan, [&](const RankPlan& rank) { peaks.push_back(static_cast<double>(rank.predicted.peak_bytes)); });
  return peaks;
}

TEST(WideMemoryTest, TheClosedFormIsNearTheProgramsWalk) {
  TensorParallelPlans plans(7);
  double sum = 0;
  int ranks = 0, too_little = 0;
  for (int n = 0; n < 200; ++n) {
    const std::unique_ptr<Setting> setting = plans.NextSetting(/*runnable=*/true);
    const Plan plan = plans.Next(*setting);
    if (!AnyTensorParallel(plan)) continue;
    const auto searched = Evaluate(*setting, plan), priced = Price(*setting, plan);
    ASSERT_TRUE(searched.ok() && priced.ok()) << searched.status() << priced.status();
    const std::vector<double> taken = PeaksOf(searched->plan), as_run = PeaksOf(priced->plan);
    for (size_t r = 0; r < taken.size(); ++r) {
      const double gap = as_run[r] / taken[r] - 1;
      sum += std::abs(gap);
      too_little += gap > 0.05;
      ++ranks;
    }
  }
  EXPECT_GT(ranks, 400);
  EXPECT_LT(sum, 0.02 * ranks);
  EXPECT_LT(too_little, ranks / 20);
}

}  // namespace
}  // namespace motley::planner
