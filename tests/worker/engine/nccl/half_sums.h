// Sums of half types, each addition rounded to nearest, ties to even.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace motley::engine {

inline float FloatOfBFloat16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
inline uint16_t BFloat16Of(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline float FloatOfFloat16(uint16_t bits) {
  const int sign = bits >> 15, exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
  float value = 0;
  if (exponent == 0x1f) {
    value = fraction == 0 ? INFINITY : NAN;
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<float>(fraction), -24);
  } else {
    value = std::ldexp(static_cast<float>(fraction + 0x400), exponent - 25);
  }
  return sign == 0 ? value : -value;
}
inline uint16_t Float16Of(float value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const float size = std::fabs(value);
  if (std::isnan(value)) return sign | 0x7e00;
  if (size == 0) return sign;
  if (size >= 65520) return sign | 0x7c00;  // rounds beyond the largest
  int exponent = 0;
  std::frexp(size, &exponent);
  // The last bit that is kept is worth 2^-24 at least; nearbyint rounds ties to even.
  const int last = std::max(exponent - 11, -24);
  const int steps = static_cast<int>(std::nearbyint(std::ldexp(size, -last)));
  // A fraction that rounds up to the next power of two carries into the exponent by itself.
  return static_cast<uint16_t>(sign | (((last + 24) << 10) + steps));
}

}  // namespace motley::engine
