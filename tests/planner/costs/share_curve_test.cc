#include "planner/costs/share_curve.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace motley::planner {
namespace {

constexpr double kMicrobatches[] = {0.5, 1, 1.5, 2, 3, 4, 7, 8, 13, 40};
constexpr double kShares[] = {0.05, 0.1, 0.25, 0.3, 0.5, 0.75, 0.99};

ShareCurve Measured(double part, std::vector<double> whole, std::vector<double> of_part) {
  const std::vector<double> samples = {1, 2, 4, 8};
  ShareCurve curve(Curve::Isotonic(samples, std::move(whole)), 0.1, 0.2);
  curve.SetPart(part, Curve::Isotonic(samples, std::move(of_part)));
  return curve;
}

// 0.1 that no share divides, and 1 a sample.
ShareCurve Straight() { return Measured(0.25, {1.1, 2.1, 4.1, 8.1}, {0.35, 0.6, 1.1, 2.1}); }

TEST(ShareCurve, WithoutAPartLaunchesAndTheUndividedStay) {
  const ShareCurve curve(Curve({1, 2}, {3, 5}), 1, 0.2);
  EXPECT_EQ(curve.At(2, 1), 5);
  EXPECT_DOUBLE_EQ(curve.At(2, 0.5), 1 + 4 * 0.6);
  EXPECT_EQ(curve.At(2, 0.5), curve.Modelled(2, 0.5));
  EXPECT_EQ(curve.At(0, 0.5), 0);
  EXPECT_FALSE(curve.has_part());
}

TEST(ShareCurve, MeasuredPointsAreExact) {
  const ShareCurve curve = Straight();
  const double whole[] = {1.1, 2.1, 4.1, 8.1}, of_part[] = {0.35, 0.6, 1.1, 2.1};
  for (size_t i = 0; i < 4; ++i) {
    const double samples = static_cast<double>(1 << i);
    EXPECT_EQ(curve.At(samples, 1), whole[i]);
    EXPECT_EQ(curve.At(samples, 0.25), of_part[i]);
    EXPECT_NE(curve.Modelled(samples, 0.25), of_part[i]);
  }
}

TEST(ShareCurve, IsStraightInTheShare) {
  for (const double share : kShares) {
    for (const double samples : {1.0, 2.0, 3.0, 8.0}) {
      EXPECT_NEAR(Straight().At(samples, share), 0.1 + samples * share, 1e-12) << samples << " at " << share;
    }
  }
}

// What bounds and searches rest on, whatever was measured: noise, a part that takes more than the whole, one that takes nearly
// nothing, launches alone.
TEST(ShareCurve, NeverFallsAndNeverTakesLessThanItsShare) {
  for (const ShareCurve& curve :
       {Straight(), Measured(0.25, {1, 2, 4, 8}, {0.9, 0.9, 0.9, 3}), Measured(0.25, {1, 1, 1, 1.5}, {2, 2, 2, 2}),
        Measured(0.5, {1, 2, 4, 8}, {0.1, 0.2, 0.3, 0.4}), Measured(0.1, {1, 4, 5, 30}, {0.8, 0.7, 4.9, 5})}) {
    for (const ShareCurve& of : {curve, curve.Like(Curve::Isotonic({1, 2, 4, 8}, {0.5, 0.6, 3, 4}))}) {
      for (const double share : kShares) {
        double before = 0;
        for (const double samples : kMicrobatches) {
          const double seconds = of.At(samples, share);
          EXPECT_GE(seconds, before - 1e-12) << samples << " at " << share;
          EXPECT_GE(seconds, share * of.At(samples, 1) - 1e-12) << samples << " at " << share;
          before = seconds;
        }
      }
      for (const double samples : kMicrobatches) {
        double before = 0;
        for (const double share : kShares) {
          EXPECT_GE(of.At(samples, share), before - 1e-12) << samples << " at " << share;
          before = of.At(samples, share);
        }
      }
    }
  }
}

TEST(ShareCurve, AnotherPassIsSharedAlike) {
  const ShareCurve measured = Straight(), half = measured.Like(Curve({1, 2, 4, 8}, {0.5, 1, 3, 5}));
  for (const double samples : {1.0, 2.0, 4.0, 8.0}) {
    EXPECT_NEAR(half.At(samples, 0.25) / half.At(samples, 1), measured.At(samples, 0.25) / measured.At(samples, 1), 1e-12);
  }
  const ShareCurve modelled(Curve({1, 2}, {3, 5}), 1, 0.2);
  EXPECT_NEAR(modelled.Like(Curve({1, 2}, {1.5, 2.5})).At(2, 0.5), modelled.At(2, 0.5) / 2, 1e-12);
}

TEST(ShareCurve, ScalesAllOfIt) {
  ShareCurve curve = Straight();
  curve.Scale(3);
  for (const double share : {0.1, 0.25, 0.6, 1.0}) EXPECT_NEAR(curve.At(3, share), 3 * Straight().At(3, share), 1e-12);
  EXPECT_NEAR(curve.Modelled(3, 0.5), 3 * Straight().Modelled(3, 0.5), 1e-12);
}

}  // namespace
}  // namespace motley::planner
