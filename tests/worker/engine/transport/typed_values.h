// Values of any of the engine's types in bytes: drawn, read, and what their sums may be.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "common/base/dtype.h"
#include "tests/worker/engine/nccl/half_sums.h"

namespace motley::engine {

inline double ValueAt(DType dtype, const std::vector<char>& array, int64_t i) {
  const char* const at = array.data() + i * SizeOfBytes(dtype);
  const auto as = [at]<typename T>(T value) {
    std::memcpy(&value, at, sizeof(T));
    return value;
  };
  switch (dtype) {
    case DType::kFloat64:
      return as(double());
    case DType::kFloat32:
      return as(float());
    case DType::kFloat16:
      return FloatOfFloat16(as(uint16_t()));
    case DType::kBFloat16:
      return FloatOfBFloat16(as(uint16_t()));
  }
  return 0;
}

inline void SetValue(DType dtype, std::vector<char>& array, int64_t i, double value) {
  char* const at = array.data() + i * SizeOfBytes(dtype);
  const auto put = [at](auto bits) { std::memcpy(at, &bits, sizeof(bits)); };
  switch (dtype) {
    case DType::kFloat64:
      return put(value);
    case DType::kFloat32:
      return put(static_cast<float>(value));
    case DType::kFloat16:
      return put(Float16Of(static_cast<float>(value)));
    case DType::kBFloat16:
      return put(BFloat16Of(static_cast<float>(value)));
  }
}

inline double HalfAnUlpAtOne(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return 0x1p-53;
    case DType::kFloat32:
      return 0x1p-24;
    case DType::kFloat16:
      return 0x1p-11;
    case DType::kBFloat16:
      return 0x1p-8;
  }
  return 0;
}

// Between -1 and 1.
inline std::vector<char> RandomValues(DType dtype, int64_t elements, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> values(-1, 1);
  std::vector<char> array(static_cast<size_t>(elements * SizeOfBytes(dtype)));
  for (int64_t i = 0; i < elements; ++i) SetValue(dtype, array, i, values(random));
  return array;
}

// Of the i-th values of all, and how far a sum in their type may be from it: each addition rounds by half a unit in the last
// place of a partial sum, which is no larger than the sum of the sizes.
struct SumWithBound {
  double sum = 0, bound = 0;
};
inline SumWithBound SumOfValues(DType dtype, const std::vector<std::vector<char>>& arrays, int64_t i) {
  long double sum = 0;
  double sizes = 0;
  for (const std::vector<char>& one : arrays) {
    sum += ValueAt(dtype, one, i);
    sizes += std::fabs(ValueAt(dtype, one, i));
  }
  return {static_cast<double>(sum), 1.01 * static_cast<double>(arrays.size()) * HalfAnUlpAtOne(dtype) * sizes};
}

}  // namespace motley::engine
