#include <gtest/gtest.h>
#include <sys/mman.h>

#include <limits>

#include "tests/worker/engine/kernels/emulated_card.h"
#include "tests/worker/engine/kernels/kernel_data.h"
#include "worker/engine/kernels/swiglu.h"

namespace motley::kernels {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kTiny = 1e-4;  // below it a value's own size says nothing of its error in float16

struct Gradients {
  double gate, up;
  double gate_parts;  // without the cancellation in it, at the minimum of SiLU
};
// In float64, rounded to T where PyTorch's operators write it.
template <typename T>
double ForwardOf(double gate, double up) {
  return AsStored<T>(gate / (1 + std::exp(-gate))) * up;
}
template <typename T>
Gradients BackwardOf(double grad, double gate, double up) {
  const double sigmoid = 1 / (1 + std::exp(-gate)), product = AsStored<T>(grad * up) * sigmoid;
  return {product * (1 + gate * (1 - sigmoid)), grad * AsStored<T>(gate * sigmoid),
          std::abs(product) * (1 + std::abs(gate) * (1 - sigmoid))};
}

template <typename T>
class SwiGluTest : public testing::Test {
 protected:
  // As the launcher does: the last block is not full.
  template <typename Arguments>
  static std::string Launch(void (*kernel)(Arguments), const Arguments& arguments, uint64_t seed) {
    const unsigned blocks = (arguments.packs + kThreads - 1) / kThreads;
    return emulated::RunGrid({.grid = {blocks}, .block = {kThreads}, .seed = seed}, [&] { kernel(arguments); });
  }
  static uint32_t Packs(size_t elements) { return static_cast<uint32_t>(elements / Pack<T>::kElements); }

  struct Arrays {
    Arrays(size_t rows, size_t columns)
        : rows(rows),
          columns(columns),
          input(rows * 2 * columns),
          output(rows * columns),
          grad(rows * columns),
          grad_input(rows * 2 * columns) {}
    size_t rows, columns;
    Array<T> input, output, grad, grad_input;
  };
  static void Run(Arrays& a, uint64_t seed) {
    const uint32_t packs = Packs(a.output.size()), packs_of_row = Packs(a.columns);
    ASSERT_EQ(Launch<SwiGluForwardArguments>(SwiGluForward<T>, {a.input.data(), a.output.data(), packs, packs_of_row}, seed), "");
    ASSERT_EQ(Launch<SwiGluBackwardArguments>(SwiGluBackward<T>,
                                              {a.grad.data(), a.input.data(), a.grad_input.data(), packs, packs_of_row}, seed),
              "");
  }
  // `other_bits`: of values, those that differ from float64's rounded ones at all. A double's exponential and a float's round a
  // few to different neighbours.
  static void Check(Arrays& a) {
    const double bound = std::max(3 * kRounding<T>, 2e-6);
    size_t values = 0, other_bits = 0;
    const auto expect = [&](double got, double want, double parts, const char* what, size_t row, size_t column) {
      ++values;
      if (got != AsStored<T>(want) && std::isfinite(want)) ++other_bits;
      ASSERT_LE(Apart(got, AsStored<T>(want), std::max(parts, kTiny)), bound)
          << what << " of row " << row << ", column " << column << ": " << got << " and not " << want;
    };
    for (size_t row = 0; row < a.rows; ++row) {
      for (size_t column = 0; column < a.columns; ++column) {
        const size_t narrow = row * a.columns + column, gate = row * 2 * a.columns + column, up = gate + a.columns;
        expect(a.output[narrow], ForwardOf<T>(a.input[gate], a.input[up]), 0, "output", row, column);
        const Gradients want = BackwardOf<T>(a.grad[narrow], a.input[gate], a.input[up]);
        expect(a.grad_input[gate], want.gate, want.gate_parts, "gradient of gate", row, column);
        expect(a.grad_input[up], want.up, 0, "gradient of up", row, column);
      }
    }
    if (sizeof(T) == 2 && values > 10000) {
      EXPECT_LT(static_cast<double>(other_bits), 0.01 * static_cast<double>(values));
    }
    for (Array<T>* array : {&a.input, &a.output, &a.grad, &a.grad_input}) array->ExpectNothingWrittenAround();
  }
};
using Types = testing::Types<BFloat16Bits, Float16Bits, float>;
TYPED_TEST_SUITE(SwiGluTest, Types);

TYPED_TEST(SwiGluTest, EqualsFloat64) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    std::mt19937_64 draw(seed);
    for (const auto& [rows, columns] : {std::pair<size_t, size_t>{1, 8}, {1, 2056}, {7, 104}, {33, 328}, {5, 1528}}) {
      typename TestFixture::Arrays arrays(rows, columns);
      arrays.input.Draw(draw, 2);
      arrays.grad.Draw(draw);
      TestFixture::Run(arrays, seed);
      TestFixture::Check(arrays);
      if (this->HasFatalFailure()) return;
    }
  }
}

// Every value of a half type as gate, beside several of up; of float32 those of bfloat16.
TYPED_TEST(SwiGluTest, EveryValueOfGate) {
  using Half = std::conditional_t<sizeof(TypeParam) == 2, TypeParam, BFloat16Bits>;
  typename TestFixture::Arrays arrays(64, 1024);
  for (const double up : {1.0, -0.75, 300.0}) {
    for (uint32_t bits = 0; bits < 65536; ++bits) {
      const size_t row = bits / 1024, column = bits % 1024;
      arrays.input.Set(row * 2048 + column, Wide(Half{static_cast<uint16_t>(bits)}));
      arrays.input.Set(row * 2048 + 1024 + column, up);
      arrays.grad.Set(bits, 0.5 - 3 * up);
    }
    TestFixture::Run(arrays, 7);
    TestFixture::Check(arrays);
  }
}

TYPED_TEST(SwiGluTest, WhatIsNotFiniteComesOutAgain) {
  for (const double bad : {kInfinity, -kInfinity, std::nan("")}) {
    for (const size_t at : {size_t{3}, size_t{8 + 5}, size_t{16 + 1}}) {  // gate, up, gradient
      typename TestFixture::Arrays arrays(1, 8);
      std::mt19937_64 draw(at);
      arrays.input.Draw(draw);
      arrays.grad.Draw(draw);
      (at < 16 ? arrays.input : arrays.grad).Set(at % 16, bad);
      TestFixture::Run(arrays, 1);
      int forward = 0, backward = 0;
      for (size_t k = 0; k < 8; ++k) forward += !std::isfinite(arrays.output[k]);
      for (size_t k = 0; k < 16; ++k) backward += !std::isfinite(arrays.grad_input[k]);
      EXPECT_EQ(forward, at < 16 ? 1 : 0);
      EXPECT_EQ(backward, at < 8 ? 2 : at < 16 ? 1 : 2) << at << " " << bad;
    }
  }
}

TYPED_TEST(SwiGluTest, NothingToDoReadsAndWritesNothing) {
  EXPECT_EQ(emulated::RunGrid({.block = {kThreads}}, [] { SwiGluForward<TypeParam>({}); }), "");
  EXPECT_EQ(emulated::RunGrid({.block = {kThreads}}, [] { SwiGluBackward<TypeParam>({}); }), "");
}

TYPED_TEST(SwiGluTest, ATensorThatDoesNotBeginAt16BytesIsSaid) {
  typename TestFixture::Arrays arrays(1, 16);
  const SwiGluForwardArguments arguments = {arrays.input.data() + 1, arrays.output.data(), 1, 1};
  EXPECT_EQ((TestFixture::template Launch<SwiGluForwardArguments>(SwiGluForward<TypeParam>, arguments, 1)),
            "a 16-byte access that is not aligned");
}

// Addresses alone: of more elements than an int counts the last pack is written, and its memory is all that there is of it.
TYPED_TEST(SwiGluTest, TheLastPackOfMoreThan2To31Elements) {
  constexpr size_t kColumns = 1 << 16, kRows = (size_t{1} << 31) / kColumns + 1, kCount = kRows * kColumns;
  const auto reserve = [](size_t elements) {
    void* room =
        mmap(nullptr, elements * sizeof(TypeParam), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(room, MAP_FAILED);
    return static_cast<TypeParam*>(room);
  };
  TypeParam *input = reserve(2 * kCount), *output = reserve(kCount), *grad_input = reserve(2 * kCount);
  const TypeParam one = Narrow<TypeParam>(1);
  TypeParam& gate = input[2 * kCount - kColumns - 1];
  TypeParam& up = input[2 * kCount - 1];
  gate = up = output[kCount - 1] = one;  // the output's is the gradient's, too
  const uint32_t packs = TestFixture::Packs(kCount), row = TestFixture::Packs(kColumns);
  const unsigned last = packs / kThreads - 1;
  const emulated::Launch launch = {.grid = {last + 1}, .block = {kThreads}, .first_block = last};
  EXPECT_EQ(emulated::RunGrid(launch, [&] { SwiGluBackward<TypeParam>({output, input, grad_input, packs, row}); }), "");
  EXPECT_EQ(emulated::RunGrid(launch, [&] { SwiGluForward<TypeParam>({input, output, packs, row}); }), "");
  const Gradients want = BackwardOf<TypeParam>(1, 1, 1);
  EXPECT_LE(Apart(Wide(output[kCount - 1]), ForwardOf<TypeParam>(1, 1), kTiny), 3 * kRounding<TypeParam>);
  EXPECT_LE(Apart(Wide(grad_input[2 * kCount - kColumns - 1]), want.gate, kTiny), 3 * kRounding<TypeParam>);
  EXPECT_LE(Apart(Wide(grad_input[2 * kCount - 1]), want.up, kTiny), 3 * kRounding<TypeParam>);
  munmap(input, 2 * kCount * sizeof(TypeParam));
  munmap(output, kCount * sizeof(TypeParam));
  munmap(grad_input, 2 * kCount * sizeof(TypeParam));
}

}  // namespace
}  // namespace motley::kernels
