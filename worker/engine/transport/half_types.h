// The half types where no libtorch is: enough to add them up. Sums are made in float32 and rounded to nearest, ties to even.
#pragma once

#include <bit>
#include <cstdint>

namespace motley::engine {

__extension__ using Float16 = _Float16;

class BFloat16 {
 public:
  BFloat16() = default;
  explicit BFloat16(float value) : bits_(Rounded(std::bit_cast<uint32_t>(value))) {}
  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits_) << 16); }
  BFloat16& operator+=(BFloat16 term) { return *this = BFloat16(static_cast<float>(*this) + static_cast<float>(term)); }

 private:
  // A NaN stays one: rounding could carry it into an infinity.
  static uint16_t Rounded(uint32_t bits) {
    const bool is_nan = (bits & 0x7fffffff) > 0x7f800000;
    return static_cast<uint16_t>(is_nan ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }

  uint16_t bits_ = 0;
};
static_assert(sizeof(Float16) == 2 && sizeof(BFloat16) == 2);

}  // namespace motley::engine
