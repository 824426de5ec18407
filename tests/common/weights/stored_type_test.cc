#include "common/weights/stored_type.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace motley {
namespace {

int64_t One(DType from, const void* in, DType to, void* out) { return ConvertElements(from, in, 1, to, out); }

// By the definition of the format.
double HalfByDefinition(uint16_t bits) {
  const int exponent = bits >> 10 & 0x1F;
  const double fraction = bits & 0x3FF;
  const double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

TEST(StoredTypeTest, EveryHalfIsExactInTheStateAndComesBack) {
  for (uint32_t b = 0; b < 0x10000; ++b) {
    const auto bits = static_cast<uint16_t>(b);
    for (const DType half : {DType::kFloat16, DType::kBFloat16}) {
      float single = 0;
      double wide = 0;
      const bool finite = One(half, &bits, DType::kFloat32, &single) < 0;
      ASSERT_EQ(finite, std::isfinite(single)) << bits;
      ASSERT_EQ(One(half, &bits, DType::kFloat64, &wide) < 0, finite) << bits;
      if (!finite) continue;
      ASSERT_EQ(static_cast<double>(single), wide) << bits;
      if (half == DType::kFloat16) {
        ASSERT_EQ(wide, HalfByDefinition(bits)) << bits;
      }
      uint16_t back = 0, from_wide = 0;
      ASSERT_LT(One(DType::kFloat32, &single, half, &back), 0) << bits;
      ASSERT_LT(One(DType::kFloat64, &wide, half, &from_wide), 0) << bits;
      ASSERT_EQ(back, bits);
      ASSERT_EQ(from_wide, bits);
    }
  }
}

// Between two halves: to the nearest, and to the even one from the middle.
TEST(StoredTypeTest, WhatIsBetweenGoesToTheNearest) {
  const auto narrow = [](float value, DType to) {
    uint16_t bits = 0;
    EXPECT_LT(One(DType::kFloat32, &value, to, &bits), 0) << value;
    float back = 0;
    One(to, &bits, DType::kFloat32, &back);
    return back;
  };
  const float step = 0x1p-7f, half_step = 0x1p-10f;
  EXPECT_EQ(narrow(1 + step / 2, DType::kBFloat16), 1);
  EXPECT_EQ(narrow(1 + step * 3 / 2, DType::kBFloat16), 1 + 2 * step);
  EXPECT_EQ(narrow(1 + step * 0.51f, DType::kBFloat16), 1 + step);
  EXPECT_EQ(narrow(1 + half_step / 2, DType::kFloat16), 1);
  EXPECT_EQ(narrow(1 + half_step * 3 / 2, DType::kFloat16), 1 + 2 * half_step);
  EXPECT_EQ(narrow(-(1 + half_step * 0.51f), DType::kFloat16), -(1 + half_step));
  EXPECT_EQ(narrow(0x1p-25f, DType::kFloat16), 0) << "half of the least subnormal";
  EXPECT_EQ(narrow(0x1.8p-24f, DType::kFloat16), 0x1p-23f);
  EXPECT_EQ(narrow(65519.0f, DType::kFloat16), 65504);
}

TEST(StoredTypeTest, TheFirstThatIsNotFiniteIsNamed) {
  std::vector<float> in(100, 1.0f), out(100);
  EXPECT_EQ(ConvertElements(DType::kFloat32, in.data(), 100, DType::kFloat32, out.data()), -1);
  in[97] = std::numeric_limits<float>::infinity();
  in[41] = std::nanf("");
  EXPECT_EQ(ConvertElements(DType::kFloat32, in.data(), 100, DType::kFloat32, out.data()), 41);
  const double beyond = 1e39;
  EXPECT_EQ(One(DType::kFloat64, &beyond, DType::kFloat32, out.data()), 0) << "more than a float32 holds";
  const float large = 65520;
  EXPECT_EQ(One(DType::kFloat32, &large, DType::kFloat16, out.data()), 0);
  const float largest = std::numeric_limits<float>::max();
  EXPECT_EQ(One(DType::kFloat32, &largest, DType::kBFloat16, out.data()), 0) << "rounds to infinity";
}

}  // namespace
}  // namespace motley
