#include "common/session/loss_text.h"

#include <gtest/gtest.h>

#include <limits>

namespace motley {
namespace {

TEST(LossTextTest, WhatIsNotFiniteHasItsName) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(LossText(2.89428), "2.8943");
  EXPECT_EQ(LossText(2.89428, 2), "2.89");
  EXPECT_EQ(LossText(-std::numeric_limits<double>::quiet_NaN()), "NaN") << "without the sign that arithmetic leaves";
  EXPECT_EQ(LossText(kInfinity), "inf");
  EXPECT_EQ(LossText(-kInfinity), "-inf");
  EXPECT_EQ(NormText(1.5e30), "1.5e+30");
  EXPECT_EQ(NormText(kInfinity), "inf");
}

}  // namespace
}  // namespace motley
