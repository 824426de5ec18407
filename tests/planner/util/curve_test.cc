#include "planner/util/curve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace motley::planner {
namespace {

using testing::ElementsAre;

TEST(Curve, LinearBetweenAndBeyondThePoints) {
  const Curve curve({1, 2, 4}, {3, 4, 8});
  EXPECT_DOUBLE_EQ(curve.At(0), 0);
  EXPECT_DOUBLE_EQ(curve.At(2), 4);
  EXPECT_DOUBLE_EQ(curve.At(3), 6);
  EXPECT_DOUBLE_EQ(curve.At(6), 12);
}

TEST(Curve, BelowTheFirstPointNeverLessThanProportional) {
  const Curve offset({1, 2}, {3, 4});
  EXPECT_DOUBLE_EQ(offset.At(0.5), 2.5);
  const Curve steep({1, 2}, {3, 9});
  EXPECT_DOUBLE_EQ(steep.At(0.5), 1.5);
}

TEST(Curve, IsotonicPoolsWhatFalls) {
  const Curve curve = Curve::Isotonic({1, 2, 3, 4, 5}, {1, 3, 2, 4, 5});
  EXPECT_THAT(curve.ys(), ElementsAre(1, 2.5, 2.5, 4, 5));
}

TEST(Curve, IsotonicIsTheClosestSeriesThatNeverFalls) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> noise(-1, 1);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<double> xs, ys;
    for (int i = 1; i <= 12; ++i) xs.push_back(i), ys.push_back(i + 3 * noise(random));
    const std::vector<double> fitted = Curve::Isotonic(xs, ys).ys();
    EXPECT_TRUE(std::is_sorted(fitted.begin(), fitted.end()));
    const auto distance = [&ys](const std::vector<double>& other) {
      double sum = 0;
      for (size_t i = 0; i < ys.size(); ++i) sum += (ys[i] - other[i]) * (ys[i] - other[i]);
      return sum;
    };
    // No other series that never falls is closer.
    for (int k = 0; k < 50; ++k) {
      std::vector<double> other = fitted;
      for (double& y : other) y += 0.2 * noise(random);
      std::sort(other.begin(), other.end());
      EXPECT_GE(distance(other), distance(fitted));
    }
  }
}

TEST(Curve, IsotonicTailIgnoresOneNoisyPoint) {
  std::vector<double> xs, ys;
  for (int i = 1; i <= 16; ++i) xs.push_back(i), ys.push_back(i);
  ys.back() = 15;  // flat at the end
  const Curve curve = Curve::Isotonic(xs, ys);
  EXPECT_GT(curve.At(32), 28);
  EXPECT_LT(curve.At(32), 33);
}

TEST(Curve, PchipGoesThroughThePointsAndStaysMonotone) {
  const std::vector<double> xs = {1, 2, 4, 5, 9}, ys = {1, 1, 7, 7.1, 30};
  const Curve curve = Curve::Pchip(xs, ys);
  for (size_t i = 0; i < xs.size(); ++i) EXPECT_NEAR(curve.At(xs[i]), ys[i], 1e-12);
  for (double x = 1; x < 12; x += 0.05) EXPECT_LE(curve.At(x), curve.At(x + 0.05) + 1e-12) << x;
}

TEST(Curve, PchipOfALineIsTheLine) {
  const Curve curve = Curve::Pchip({1, 3, 4, 8}, {2, 6, 8, 16});
  for (double x = 1; x < 16; x += 0.25) EXPECT_NEAR(curve.At(x), 2 * x, 1e-12);
}

TEST(Curve, ScaledKeepsTheShape) {
  const Curve curve = Curve::Isotonic({1, 2, 3, 4}, {1, 2, 4, 8});
  const Curve scaled = curve.Scaled(0.5, 3);
  for (double x = 0.3; x < 10; x += 0.7) EXPECT_NEAR(scaled.At(x / 2), 3 * curve.At(x), 1e-9) << x;
}

}  // namespace
}  // namespace motley::planner
