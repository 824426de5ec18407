#include "worker/engine/profiler/rough_points.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley::engine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<ComputePoint> Points(const std::vector<double>& backward_seconds) {
  std::vector<ComputePoint> points;
  for (const double seconds : backward_seconds) {
    ComputePoint point;
    point.microbatch = points.empty() ? 1 : 2 * points.back().microbatch;
    point.forward_seconds = static_cast<double>(point.microbatch);
    point.backward_seconds = seconds;
    points.push_back(point);
  }
  return points;
}

TEST(RoughPointsTest, WhatRisesWithTheSamplesIsSmooth) {
  EXPECT_THAT(RoughPoints(Points({2, 4, 8, 16})), IsEmpty());
  EXPECT_THAT(RoughPoints(Points({10, 10.1, 10.3, 12})), IsEmpty()) << "a launch that weighs more than the samples";
  EXPECT_THAT(RoughPoints(Points({2, 4.5, 9.5})), IsEmpty()) << "caches and noise";
  EXPECT_THAT(RoughPoints(Points({2})), IsEmpty());
}

TEST(RoughPointsTest, WhatRisesFasterIsRoughAtTheLargerSize) {
  EXPECT_THAT(RoughPoints(Points({0.069, 0.520})), ElementsAre(1));
  EXPECT_THAT(RoughPoints(Points({1, 2, 8, 9})), ElementsAre(2));
}

TEST(RoughPointsTest, WhatFallsIsRoughAtTheSmallerSize) { EXPECT_THAT(RoughPoints(Points({5, 2, 4, 8})), ElementsAre(0)); }

TEST(RoughPointsTest, FiguresThatWereNotMeasuredSayNothing) {
  std::vector<ComputePoint> points = Points({2, 4, 8});
  points[1].backward_input_seconds = 3;
  EXPECT_THAT(RoughPoints(points), IsEmpty());
}

TEST(RoughPointsTest, TheFasterOfEachFigureIsKept) {
  ComputePoint first, again;
  first.forward_seconds = 1, first.backward_seconds = 9, first.part_forward_seconds = 5, first.saved_bytes = 100;
  again.forward_seconds = 2, again.backward_seconds = 3, again.saved_bytes = 200;
  const ComputePoint best = Fastest(first, again);
  EXPECT_EQ(best.forward_seconds, 1);
  EXPECT_EQ(best.backward_seconds, 3);
  EXPECT_EQ(best.part_forward_seconds, 5) << "not measured again";
  EXPECT_EQ(best.saved_bytes, 100);
}

}  // namespace
}  // namespace motley::engine
