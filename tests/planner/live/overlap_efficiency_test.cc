#include "planner/live/overlap_efficiency.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace motley::planner {
namespace {

// Compute of `work` seconds beside a collective of `transfer`, both at the pace of the moment.
double SecondsTogether(double work, double transfer, const Overlap& overlap) {
  const double beside = std::min(transfer * overlap.collectives, work * overlap.compute);
  return beside + (work - beside / overlap.compute) + (transfer - beside / overlap.collectives);
}

TEST(OverlapEfficiency, IsWhatACollectiveDoesNotCostTheComputeThatHidesIt) {
  for (const Overlap& overlap : {Overlap{1, 1}, Overlap{1.1, 1.3}, Overlap{1.25, 1}, Overlap{1, 1.5}, Overlap{1.5, 1.5}}) {
    const double efficiency = OverlapEfficiency({{1, 1}, overlap});
    EXPECT_NEAR(10 + (1 - efficiency) * 2, SecondsTogether(10, 2, overlap), 1e-12)
        << overlap.compute << " " << overlap.collectives;
  }
}

TEST(OverlapEfficiency, TheRankThatItCostsMostDecides) {
  EXPECT_DOUBLE_EQ(OverlapEfficiency({{1.25, 1}, {1, 1.5}, {1.1, 1}}), 0.8);
}

// Together they would take longer than one after the other, which the plan's language does not say.
TEST(OverlapEfficiency, IsNeverLessThanNothing) { EXPECT_EQ(OverlapEfficiency({{3, 3}}), 0); }

TEST(OverlapEfficiency, WithoutAMeasurementAllHides) { EXPECT_EQ(OverlapEfficiency({}), 1); }

}  // namespace
}  // namespace motley::planner
