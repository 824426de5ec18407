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

TEST(LossTextTest, AValidationSaysWhatItsLossMeans) {
  EXPECT_EQ(ValidationText(1.2345, 0.714), "1.2345 (perplexity 3.44; 0.71 bits a byte)");
  EXPECT_EQ(ValidationText(1.2345, std::nullopt), "1.2345 (perplexity 3.44)") << "never a 0 for what is not known";
  EXPECT_EQ(ValidationText(6.907, std::nullopt), "6.9070 (perplexity 999.25)");
  EXPECT_EQ(ValidationText(10, std::nullopt), "10.0000 (perplexity 22026)");
  EXPECT_EQ(ValidationText(30, std::nullopt), "30.0000 (perplexity 1.07e+13)");
  EXPECT_EQ(ValidationText(1000, 1442.7), "1000.0000 (perplexity inf; 1442.70 bits a byte)");
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(ValidationText(kInfinity, kInfinity), "inf");
  EXPECT_EQ(ValidationText(std::numeric_limits<double>::quiet_NaN(), std::nullopt), "NaN");
}

}  // namespace
}  // namespace motley
