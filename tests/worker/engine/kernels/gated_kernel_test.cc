#include <gtest/gtest.h>
#include <sys/mman.h>

#include <limits>
#include <numbers>
#include <type_traits>

#include "tests/worker/engine/kernels/emulated_card.h"
#include "tests/worker/engine/kernels/kernel_data.h"
#include "worker/engine/kernels/gated.h"

namespace motley::kernels {
namespace {

constexpr double kTinyProduct = 1e-4;  // below it a value's own size says nothing of its error in float16

// In float64: what is made of the gate, its slope, and how much of a rounding of the exponent comes into both.
struct GateOf {
  double value, slope;
  double slope_parts;  // without the cancellation in it, at the minimum
  double exponent;
};
struct SwiGlu {
  using Forward = SwiGluForwardArguments;
  using Backward = SwiGluBackwardArguments;
  template <typename T>
  static constexpr void (*kForward)(Forward) = SwiGluForward<T>;
  template <typename T>
  static constexpr void (*kBackward)(Backward) = SwiGluBackward<T>;
  static GateOf Of(double x) {
    const double sigmoid = 1 / (1 + std::exp(-x));
    return {x / (1 + std::exp(-x)), sigmoid * (1 + x * (1 - sigmoid)), sigmoid * (1 + std::abs(x) * (1 - sigmoid)), 0};
  }
};
struct GeGlu {
  using Forward = GeGluForwardArguments;
  using Backward = GeGluBackwardArguments;
  template <typename T>
  static constexpr void (*kForward)(Forward) = GeGluForward<T>;
  template <typename T>
  static constexpr void (*kBackward)(Backward) = GeGluBackward<T>;
  static GateOf Of(double x) {
    const double beta = std::sqrt(2 / std::numbers::pi), kappa = 0.044715;
    const double square = static_cast<float>(x * x);  // which is infinite where PyTorch's operator has it so
    const double u = beta * (x + kappa * x * square), sigmoid = 1 / (1 + std::exp(-2 * u));
    const double other = x * sigmoid * (1 / (1 + std::exp(2 * u))) * (2 * beta * (1 + 3 * kappa * square));
    return {x * sigmoid, sigmoid + other, sigmoid + std::abs(other), std::min(std::abs(2 * u), 100.0)};
  }
};

// With what its error is a part of: of what is multiplied, too, and of no value below kTinyProduct.
struct WithParts {
  double value, parts;
};
struct GatedGradients {
  WithParts gate, up;
};
// Rounded to T where PyTorch's operators write it.
template <typename T, typename Kind>
WithParts GatedForwardOf(double gate, double up) {
  const GateOf of = Kind::Of(gate);
  return {AsStored<T>(of.value) * up, std::max(std::abs(of.value) * (1 + of.exponent), kTinyProduct) * std::abs(up)};
}
template <typename T, typename Kind>
GatedGradients GatedBackwardOf(double grad, double gate, double up) {
  const GateOf of = Kind::Of(gate);
  const double product = AsStored<T>(grad * up);
  return {{product * of.slope, std::abs(product) * of.slope_parts * (1 + of.exponent)}, GatedForwardOf<T, Kind>(gate, grad)};
}

template <typename Element, typename GatedKind>
struct GatedCase {
  using T = Element;
  using Kind = GatedKind;
};
template <typename Tested>
class GatedTest : public testing::Test {
 protected:
  using T = typename Tested::T;
  using Kind = typename Tested::Kind;
  // As the launcher does: the last block is not full.
  template <typename Arguments>
  static std::string Launch(void (*kernel)(Arguments), const std::type_identity_t<Arguments>& arguments, uint64_t seed) {
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
    ASSERT_EQ(Launch(Kind::template kForward<T>, {{a.input.data(), a.output.data(), packs, packs_of_row}}, seed), "");
    ASSERT_EQ(
        Launch(Kind::template kBackward<T>, {{a.grad.data(), a.input.data(), a.grad_input.data(), packs, packs_of_row}}, seed),
        "");
  }
  // `other_bits`: of values, those that differ from float64's rounded ones at all. A double's exponential and a float's round a
  // few to different neighbours.
  static void Check(Arrays& a) {
    const double bound = std::max(3 * kRounding<T>, 2e-6);
    size_t values = 0, other_bits = 0;
    const auto expect = [&](double got, const WithParts& product, const char* what, size_t row, size_t column) {
      const auto [want, parts] = product;
      ++values;
      if (got != AsStored<T>(want) && std::isfinite(want)) ++other_bits;
      ASSERT_LE(Apart(got, AsStored<T>(want), std::max(parts, kTinyProduct)), bound)
          << what << " of row " << row << ", column " << column << ": " << got << " and not " << want;
    };
    for (size_t row = 0; row < a.rows && !HasFatalFailure(); ++row) {
      for (size_t column = 0; column < a.columns; ++column) {
        const size_t narrow = row * a.columns + column, gate = row * 2 * a.columns + column, up = gate + a.columns;
        expect(a.output[narrow], GatedForwardOf<T, Kind>(a.input[gate], a.input[up]), "output", row, column);
        const GatedGradients want = GatedBackwardOf<T, Kind>(a.grad[narrow], a.input[gate], a.input[up]);
        expect(a.grad_input[gate], want.gate, "gradient of gate", row, column);
        expect(a.grad_input[up], want.up, "gradient of up", row, column);
      }
    }
    if (sizeof(T) == 2 && values > 10000) {
      EXPECT_LT(static_cast<double>(other_bits), 0.01 * static_cast<double>(values));
    }
    for (Array<T>* array : {&a.input, &a.output, &a.grad, &a.grad_input}) array->ExpectNothingWrittenAround();
  }
};
using GatedCases = testing::Types<GatedCase<BFloat16Bits, SwiGlu>, GatedCase<Float16Bits, SwiGlu>, GatedCase<float, SwiGlu>,
                                  GatedCase<BFloat16Bits, GeGlu>, GatedCase<Float16Bits, GeGlu>, GatedCase<float, GeGlu>>;
TYPED_TEST_SUITE(GatedTest, GatedCases);

TYPED_TEST(GatedTest, EqualsFloat64) {
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
TYPED_TEST(GatedTest, EveryValueOfGate) {
  using T = typename TypeParam::T;
  using Half = std::conditional_t<sizeof(T) == 2, T, BFloat16Bits>;
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

TYPED_TEST(GatedTest, WhatIsNotFiniteComesOutAgain) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
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

TYPED_TEST(GatedTest, NothingToDoReadsAndWritesNothing) {
  using Kind = typename TypeParam::Kind;
  EXPECT_EQ(emulated::RunGrid({.block = {kThreads}}, [] { Kind::template kForward<typename TypeParam::T>({}); }), "");
  EXPECT_EQ(emulated::RunGrid({.block = {kThreads}}, [] { Kind::template kBackward<typename TypeParam::T>({}); }), "");
}

TYPED_TEST(GatedTest, ATensorThatDoesNotBeginAt16BytesIsSaid) {
  typename TestFixture::Arrays arrays(1, 16);
  const typename TypeParam::Kind::Forward arguments = {{arrays.input.data() + 1, arrays.output.data(), 1, 1}};
  EXPECT_EQ(TestFixture::Launch(TypeParam::Kind::template kForward<typename TypeParam::T>, arguments, 1),
            "a 16-byte access that is not aligned");
}

// Addresses alone: of more elements than an int counts the last pack is written, and its memory is all that there is of it.
TYPED_TEST(GatedTest, TheLastPackOfMoreThan2To31Elements) {
  using T = typename TypeParam::T;
  using Kind = typename TypeParam::Kind;
  constexpr size_t kColumns = 1 << 16, kRows = (size_t{1} << 31) / kColumns + 1, kCount = kRows * kColumns;
  const auto reserve = [](size_t elements) {
    void* room = mmap(nullptr, elements * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(room, MAP_FAILED);
    return static_cast<T*>(room);
  };
  T *input = reserve(2 * kCount), *output = reserve(kCount), *grad_input = reserve(2 * kCount);
  const T one = Narrow<T>(1);
  T& gate = input[2 * kCount - kColumns - 1];
  T& up = input[2 * kCount - 1];
  gate = up = output[kCount - 1] = one;  // the output's is the gradient's, too
  const uint32_t packs = TestFixture::Packs(kCount), row = TestFixture::Packs(kColumns);
  const unsigned last = packs / kThreads - 1;
  const emulated::Launch launch = {.grid = {last + 1}, .block = {kThreads}, .first_block = last};
  EXPECT_EQ(emulated::RunGrid(launch, [&] { Kind::template kBackward<T>({{output, input, grad_input, packs, row}}); }), "");
  EXPECT_EQ(emulated::RunGrid(launch, [&] { Kind::template kForward<T>({{input, output, packs, row}}); }), "");
  const GatedGradients want = GatedBackwardOf<T, Kind>(1, 1, 1);
  EXPECT_LE(Apart(Wide(output[kCount - 1]), GatedForwardOf<T, Kind>(1, 1).value, kTinyProduct), 3 * kRounding<T>);
  EXPECT_LE(Apart(Wide(grad_input[2 * kCount - kColumns - 1]), want.gate.value, kTinyProduct), 3 * kRounding<T>);
  EXPECT_LE(Apart(Wide(grad_input[2 * kCount - 1]), want.up.value, kTinyProduct), 3 * kRounding<T>);
  munmap(input, 2 * kCount * sizeof(T));
  munmap(output, kCount * sizeof(T));
  munmap(grad_input, 2 * kCount * sizeof(T));
}

}  // namespace
}  // namespace motley::kernels
