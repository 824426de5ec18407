// Arrays for tests of kernels: aligned, with packs on both sides that nobody may write, and outputs that begin as numbers that
// are none. Behind emulated_card.h.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "tests/worker/engine/kernels/emulated_card.h"
#include "worker/engine/kernels/kernel_types.h"

namespace motley::kernels {

// Half a unit in the last place of 1.
template <typename T>
inline constexpr double kRounding = 0;
template <>
inline constexpr double kRounding<BFloat16Bits> = 1.0 / 256;
template <>
inline constexpr double kRounding<Float16Bits> = 1.0 / 2048;
template <>
inline constexpr double kRounding<float> = 1.0 / (1 << 24);

template <typename T>
double AsStored(double value) {
  return Wide(Narrow<T>(static_cast<float>(value)));
}

template <typename T>
class Array {
 public:
  explicit Array(size_t count)
      : count_(count), room_(static_cast<std::byte*>(std::aligned_alloc(kPackBytes, Bytes())), &std::free) {
    std::memset(room_.get(), kPoison, Bytes());
  }
  T* data() { return reinterpret_cast<T*>(room_.get() + kPackBytes); }
  size_t size() const { return count_; }
  double operator[](size_t at) { return Wide(data()[at]); }
  void Set(size_t at, double value) { data()[at] = Narrow<T>(static_cast<float>(value)); }
  // Of a normal distribution.
  Array& Draw(std::mt19937_64& draw, double scale = 1) {
    std::normal_distribution<double> normal(0, scale);
    for (size_t at = 0; at < count_; ++at) Set(at, normal(draw));
    return *this;
  }
  void ExpectNothingWrittenAround() {
    const auto poisoned = [](std::byte byte) { return byte == std::byte{kPoison}; };
    std::byte* const end = room_.get() + kPackBytes + count_ * sizeof(T);
    EXPECT_TRUE(std::all_of(room_.get(), room_.get() + kPackBytes, poisoned)) << "written before the array";
    EXPECT_TRUE(std::all_of(end, room_.get() + Bytes(), poisoned)) << "written behind the array";
  }

 private:
  static constexpr unsigned char kPoison = 0xff;
  size_t Bytes() const { return (count_ * sizeof(T) + kPackBytes - 1) / kPackBytes * kPackBytes + 2 * kPackBytes; }

  const size_t count_;
  std::unique_ptr<std::byte, decltype(&std::free)> room_;
};

// How far two sides are from each other: in parts of their size, of at least `least`; 0 where neither is a finite number.
inline double Apart(double got, double want, double least) {
  if (!std::isfinite(got) || !std::isfinite(want)) return std::isfinite(got) == std::isfinite(want) ? 0 : INFINITY;
  return std::abs(got - want) / std::max(std::abs(want), least);
}

}  // namespace motley::kernels
