#include "common/weights/stored_type.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace motley {
namespace {

struct BFloat16 {
  uint16_t bits;
};
struct Float16 {
  uint16_t bits;
};

float Widen(BFloat16 value) { return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16); }

float Widen(Float16 value) {
  const uint32_t bits = value.bits, sign = (bits & 0x8000) << 16, rest = bits & 0x7FFF, exponent = rest >> 10;
  const float magnitude = exponent == 0x1F ? std::bit_cast<float>(0x7F800000 | (rest & 0x3FF) << 13)
                          : exponent == 0  ? static_cast<float>(rest) * 0x1p-24f
                                           : std::bit_cast<float>((rest << 13) + (112u << 23));
  return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
}
float Widen(float value) { return value; }
double Widen(double value) { return value; }

void Narrow(double value, BFloat16* out) {
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  const bool finite = (bits & 0x7F800000) != 0x7F800000;
  out->bits = static_cast<uint16_t>((finite ? bits + 0x7FFF + (bits >> 16 & 1) : bits) >> 16);
}

void Narrow(double value, Float16* out) {
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const float magnitude = std::bit_cast<float>(bits & 0x7FFFFFFF);
  constexpr float kFirstInfinite = 65520.0f, kLeastNormal = 0x1p-14f;
  uint32_t half = 0x7C00;
  if (magnitude < kLeastNormal) {
    half = static_cast<uint32_t>(std::nearbyint(magnitude * 0x1p24f));  // in units of the least subnormal
  } else if (magnitude < kFirstInfinite) {
    const uint32_t rest = (bits & 0x7FFFFFFF) - (112u << 23);
    half = (rest + 0xFFF + (rest >> 13 & 1)) >> 13;
  } else if (std::isnan(magnitude)) {
    half = 0x7E00;
  }
  out->bits = static_cast<uint16_t>(sign | half);
}
void Narrow(double value, float* out) { *out = static_cast<float>(value); }
void Narrow(double value, double* out) { *out = value; }

template <typename From, typename To>
int64_t Convert(const char* in, int64_t count, char* out) {
  bool finite = true;
  for (int64_t i = 0; i < count; ++i) {
    From from;
    To to;
    std::memcpy(&from, in + i * static_cast<int64_t>(sizeof(From)), sizeof(From));
    const auto value = Widen(from);
    Narrow(value, &to);
    std::memcpy(out + i * static_cast<int64_t>(sizeof(To)), &to, sizeof(To));
    finite &= std::isfinite(Widen(to));
  }
  if (finite) return -1;
  for (int64_t i = 0;; ++i) {
    To to;
    std::memcpy(&to, out + i * static_cast<int64_t>(sizeof(To)), sizeof(To));
    if (!std::isfinite(Widen(to))) return i;
  }
}

template <typename From>
int64_t ConvertFrom(const char* in, int64_t count, DType to, char* out) {
  switch (to) {
    case DType::kFloat32:
      return Convert<From, float>(in, count, out);
    case DType::kFloat64:
      return Convert<From, double>(in, count, out);
    case DType::kFloat16:
      return Convert<From, Float16>(in, count, out);
    case DType::kBFloat16:
      return Convert<From, BFloat16>(in, count, out);
  }
  return 0;
}

}  // namespace

int64_t ConvertElements(DType from, const void* in, int64_t count, DType to, void* out) {
  const char* const read = static_cast<const char*>(in);
  char* const written = static_cast<char*>(out);
  switch (from) {
    case DType::kFloat32:
      return ConvertFrom<float>(read, count, to, written);
    case DType::kFloat64:
      return ConvertFrom<double>(read, count, to, written);
    case DType::kFloat16:
      return ConvertFrom<Float16>(read, count, to, written);
    case DType::kBFloat16:
      return ConvertFrom<BFloat16>(read, count, to, written);
  }
  return 0;
}

}  // namespace motley
