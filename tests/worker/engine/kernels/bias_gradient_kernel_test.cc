#include <gtest/gtest.h>
#include <sys/mman.h>

#include <limits>

#include "tests/worker/engine/kernels/emulated_card.h"
#include "tests/worker/engine/kernels/kernel_data.h"
#include "worker/engine/kernels/bias_gradient.h"

namespace motley::kernels {
namespace {

template <typename T>
class BiasGradientTest : public testing::Test {
 protected:
  static std::string Launch(const BiasGradientArguments& arguments, uint64_t seed) {
    const uint32_t columns = kSumPacks * (arguments.of_sums != 0 ? Pack<float>::kElements : Pack<T>::kElements);
    const uint32_t parts = (arguments.rows + arguments.rows_of_part - 1) / arguments.rows_of_part;
    const size_t shared = kSumRows * columns * sizeof(float);
    return emulated::RunGrid({.grid = {parts * ((arguments.columns + columns - 1) / columns)},
                              .block = {kThreads},
                              .shared_bytes = shared,
                              .seed = seed},
                             [&] { BiasGradient<T>(arguments); });
  }
  // In parts, as an operator does: into `gradient`, to which it adds.
  static void Run(Array<T>& input, uint32_t columns, uint32_t rows_of_part, Array<float>& gradient, uint64_t seed) {
    const auto rows = static_cast<uint32_t>(input.size() / columns);
    const uint32_t parts = (rows + rows_of_part - 1) / rows_of_part;
    if (parts == 1) {
      ASSERT_EQ(Launch({input.data(), gradient.data(), rows, columns, rows, 0, 1, 0}, seed), "");
    } else {
      Array<float> sums(size_t{parts} * columns);
      ASSERT_EQ(Launch({input.data(), sums.data(), rows, columns, rows_of_part, 0, 0, 0}, seed), "");
      ASSERT_EQ(Launch({sums.data(), gradient.data(), parts, columns, parts, 1, 1, 0}, seed), "");
      sums.ExpectNothingWrittenAround();
    }
    input.ExpectNothingWrittenAround();
    gradient.ExpectNothingWrittenAround();
  }
};
using Types = testing::Types<BFloat16Bits, Float16Bits, float>;
TYPED_TEST_SUITE(BiasGradientTest, Types);

TYPED_TEST(BiasGradientTest, AddsTheSumsOfFloat64) {
  struct Shape {
    uint32_t rows, columns, rows_of_part;
  };
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    for (const auto& [rows, columns, rows_of_part] :
         {Shape{1, 8, 256}, {31, 8, 64}, {33, 72, 256}, {100, 200, 33}, {97, 328, 32}}) {
      std::mt19937_64 draw(seed);
      Array<TypeParam> input(size_t{rows} * columns);
      Array<float> gradient(columns);
      input.Draw(draw);
      gradient.Draw(draw, 10);
      std::vector<double> want(columns), parts(columns);
      for (size_t column = 0; column < columns; ++column) want[column] = gradient[column], parts[column] = std::abs(want[column]);
      for (size_t at = 0; at < input.size(); ++at) {
        want[at % columns] += input[at];
        parts[at % columns] += std::abs(input[at]);
      }
      TestFixture::Run(input, columns, rows_of_part, gradient, seed);
      for (size_t column = 0; column < columns; ++column) {
        ASSERT_LE(Apart(gradient[column], want[column], parts[column]), 20 * kRounding<float>) << "column " << column;
      }
    }
  }
}

// Threads in whatever order: the same sums, to the bit.
TYPED_TEST(BiasGradientTest, EveryOrderOfThreadsHasTheSameBits) {
  std::mt19937_64 draw(1);
  Array<TypeParam> input(300 * 88);
  input.Draw(draw);
  const auto sums = [&](uint64_t seed) {
    Array<float> gradient(88);
    for (size_t at = 0; at < 88; ++at) gradient.Set(at, 0.1);
    TestFixture::Run(input, 88, 64, gradient, seed);
    return std::vector<float>(gradient.data(), gradient.data() + 88);
  };
  const std::vector<float> first = sums(1);
  for (uint64_t seed = 2; seed <= 6; ++seed) EXPECT_EQ(sums(seed), first);
}

TYPED_TEST(BiasGradientTest, WhatIsNotFiniteComesOutAgainInItsColumnAlone) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double bad : {kInfinity, -kInfinity, std::nan("")}) {
    for (const size_t row : {size_t{0}, size_t{40}, size_t{69}}) {
      Array<TypeParam> input(70 * 16);
      Array<float> gradient(16);
      std::mt19937_64 draw(row);
      input.Draw(draw);
      gradient.Draw(draw);
      input.Set(row * 16 + 11, bad);
      TestFixture::Run(input, 16, 32, gradient, row);
      for (size_t column = 0; column < 16; ++column) EXPECT_EQ(std::isfinite(gradient[column]), column != 11) << column;
    }
  }
}

TYPED_TEST(BiasGradientTest, NothingToDoReadsAndWritesNothing) {
  EXPECT_EQ(emulated::RunGrid({.block = {kThreads}}, [] { BiasGradient<TypeParam>({}); }), "");
}

TYPED_TEST(BiasGradientTest, ATensorThatDoesNotBeginAt16BytesIsSaid) {
  Array<TypeParam> input(16);
  Array<float> gradient(8);
  EXPECT_EQ(TestFixture::Launch({input.data() + 1, gradient.data(), 1, 8, 1, 0, 1, 0}, 1),
            "a 16-byte access that is not aligned");
}

// Addresses alone: the last row of more elements than an int counts.
TYPED_TEST(BiasGradientTest, TheLastRowOfMoreThan2To31Elements) {
  constexpr uint32_t kColumns = 1 << 16, kRows = (1u << 31) / kColumns + 1, kRowsOfPart = 256;
  constexpr size_t kBytes = size_t{kRows} * kColumns * sizeof(TypeParam);
  void* const room = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(room, MAP_FAILED);
  auto* const input = static_cast<TypeParam*>(room);
  input[size_t{kRows} * kColumns - 1] = Narrow<TypeParam>(3);
  constexpr uint32_t kParts = (kRows + kRowsOfPart - 1) / kRowsOfPart, kWidth = kSumPacks * Pack<TypeParam>::kElements;
  Array<float> sums(size_t{kParts} * kColumns);
  const unsigned last = kParts * (kColumns / kWidth) - 1;
  const emulated::Launch launch = {
      .grid = {last + 1}, .block = {kThreads}, .shared_bytes = kSumRows * kWidth * sizeof(float), .first_block = last};
  EXPECT_EQ(emulated::RunGrid(launch,
                              [&] {
                                BiasGradient<TypeParam>({input, sums.data(), kRows, kColumns, kRowsOfPart, 0, 0, 0});
                              }),
            "");
  EXPECT_EQ(sums[sums.size() - 1], 3);
  EXPECT_EQ(sums[sums.size() - 2], 0);
  munmap(room, kBytes);
}

}  // namespace
}  // namespace motley::kernels
