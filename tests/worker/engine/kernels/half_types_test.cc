// Every value of both half types, and what lies between two of them.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/worker/engine/kernels/emulated_card.h"
#include "tests/worker/engine/kernels/kernel_data.h"
#include "worker/engine/kernels/kernel_types.h"

namespace motley::kernels {
namespace {

struct Layout {
  int exponent_bits, fraction_bits;
};
template <typename T>
constexpr Layout kLayout = {5, 10};
template <>
constexpr Layout kLayout<BFloat16Bits> = {8, 7};

// By IEEE 754's definition.
template <typename T>
double ByDefinition(uint16_t bits) {
  const auto [exponent_bits, fraction_bits] = kLayout<T>;
  const int top = (1 << exponent_bits) - 1, bias = top / 2;
  const int exponent = bits >> fraction_bits & top, fraction = bits & ((1 << fraction_bits) - 1);
  const double sign = bits & 0x8000 ? -1 : 1, part = fraction * std::pow(2.0, -fraction_bits);
  if (exponent == top) return fraction != 0 ? NAN : sign * INFINITY;
  return sign * (exponent == 0 ? part * std::pow(2.0, 1 - bias) : (1 + part) * std::pow(2.0, exponent - bias));
}

template <typename T>
class HalfTypesTest : public testing::Test {};
using HalfTypes = testing::Types<BFloat16Bits, Float16Bits>;
TYPED_TEST_SUITE(HalfTypesTest, HalfTypes);

TYPED_TEST(HalfTypesTest, EveryValueIsReadAndWrittenAgain) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto value = TypeParam{static_cast<uint16_t>(bits)};
    const double want = ByDefinition<TypeParam>(value.bits);
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(Wide(value))) << bits;
      ASSERT_TRUE(std::isnan(Wide(Narrow<TypeParam>(Wide(value))))) << bits;
      continue;
    }
    ASSERT_EQ(Wide(value), want) << bits;
    ASSERT_EQ(std::signbit(Wide(value)), std::signbit(want)) << bits;
    ASSERT_EQ(Narrow<TypeParam>(Wide(value)).bits, value.bits) << bits;
  }
}

TYPED_TEST(HalfTypesTest, WhatLiesBetweenGoesToTheNearestAndTiesToEven) {
  const auto [exponent_bits, fraction_bits] = kLayout<TypeParam>;
  const uint32_t largest = ((1u << exponent_bits) - 1) << fraction_bits;  // of those with a next one: infinity's bits
  for (uint32_t bits = 0; bits < largest; ++bits) {
    const double low = ByDefinition<TypeParam>(static_cast<uint16_t>(bits));
    const double step = bits + 1 < largest ? ByDefinition<TypeParam>(static_cast<uint16_t>(bits + 1)) - low
                                           : low - ByDefinition<TypeParam>(static_cast<uint16_t>(bits - 1));
    const float middle = static_cast<float>(low + step / 2);
    ASSERT_EQ(middle, low + step / 2);
    for (const float sign : {1.0f, -1.0f}) {
      const auto narrow = [&](float value) { return Narrow<TypeParam>(sign * value).bits & 0x7fffu; };
      ASSERT_EQ(narrow(middle), bits + bits % 2);
      ASSERT_EQ(narrow(std::nextafter(middle, 0.0f)), bits);
      ASSERT_EQ(narrow(std::nextafter(middle, INFINITY)), bits + 1);
    }
  }
}

}  // namespace
}  // namespace motley::kernels
