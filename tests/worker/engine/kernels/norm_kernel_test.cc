#include <gtest/gtest.h>
#include <sys/mman.h>

#include "tests/worker/engine/kernels/emulated_card.h"
#include "tests/worker/engine/kernels/kernel_data.h"
#include "worker/engine/kernels/norm.h"
#include "worker/engine/kernels/norm_grid.h"

namespace motley::kernels {
namespace {

constexpr float kNormEps = 1e-5f;

enum class WhichNorm { kLayerNorm, kRmsNorm, kRmsNormPlusOne };
constexpr WhichNorm kNormKinds[] = {WhichNorm::kLayerNorm, WhichNorm::kRmsNorm, WhichNorm::kRmsNormPlusOne};

// What a norm reads and makes. What is carried is added before it, and its gradient behind it, where `carries`.
template <typename T>
struct NormArrays {
  NormArrays(WhichNorm kind, size_t rows, size_t columns, bool carries)
      : kind(kind),
        rows(rows),
        columns(columns),
        carries(carries),
        grid(GridOfNormBackward(static_cast<int64_t>(rows), static_cast<int64_t>(columns), sizeof(T), centred())),
        input(rows * columns),
        carried(rows * columns),
        sum(rows * columns),
        weight(columns),
        bias(columns),
        output(rows * columns),
        grad(rows * columns),
        grad_carried(rows * columns),
        grad_input(rows * columns),
        mean(rows),
        rstd(rows),
        partial(size_t{grid.blocks} * grid.numbers),
        gradients(grid.numbers) {}
  void Draw(uint64_t seed, double offset = 0) {
    std::mt19937_64 draw(seed);
    for (Array<T>* array : {&input, &carried, &weight, &bias, &grad, &grad_carried}) array->Draw(draw, 1.5);
    for (size_t at = 0; at < input.size(); ++at) input.Set(at, input[at] + offset);
  }
  NormForwardGrid forward_grid() const {
    return GridOfNormForward(static_cast<int64_t>(rows), static_cast<int64_t>(columns), sizeof(T));
  }
  emulated::Launch forward_launch(uint64_t seed = 0) const {
    return {.grid = {forward_grid().blocks}, .block = {kThreads}, .shared_bytes = NormForwardGrid::kSharedBytes, .seed = seed};
  }
  bool centred() const { return kind == WhichNorm::kLayerNorm; }
  float weight_plus() const { return kind == WhichNorm::kRmsNormPlusOne ? 1 : 0; }
  Array<T>& normed() { return carries ? sum : input; }

  WhichNorm kind;
  size_t rows, columns;
  bool carries;
  NormBackwardGrid grid;
  Array<T> input, carried, sum, weight, bias, output, grad, grad_carried, grad_input;
  Array<float> mean, rstd, partial, gradients;
  float number = 0;  // of a check for what is not finite
};

template <typename T>
NormForwardArguments NormForwardOf(NormArrays<T>& a) {
  return {.input = a.input.data(),
          .carried = a.carries ? a.carried.data() : nullptr,
          .sum = a.carries ? a.sum.data() : nullptr,
          .weight = a.weight.data(),
          .bias = a.centred() ? a.bias.data() : nullptr,
          .output = a.output.data(),
          .mean = a.centred() ? a.mean.data() : nullptr,
          .rstd = a.rstd.data(),
          .rows = static_cast<int64_t>(a.rows),
          .packs_of_row = a.grid.packs_of_row,
          .eps = kNormEps,
          .weight_plus = a.weight_plus(),
          .warps_of_row = a.forward_grid().warps_of_row};
}
template <typename T>
NormBackwardArguments NormBackwardOf(NormArrays<T>& a) {
  return {.grad_output = a.grad.data(),
          .input = a.normed().data(),
          .carried = a.carries ? a.grad_carried.data() : nullptr,
          .weight = a.weight.data(),
          .mean = a.centred() ? a.mean.data() : nullptr,
          .rstd = a.rstd.data(),
          .grad_input = a.grad_input.data(),
          .partial = a.partial.data(),
          .not_finite = &a.number,
          .rows = static_cast<int64_t>(a.rows),
          .packs_of_row = a.grid.packs_of_row,
          .warps_of_row = a.grid.warps_of_row,
          .sums_in_shared = a.grid.sums_in_shared,
          .weight_plus = a.weight_plus()};
}

template <typename T>
class NormTest : public testing::Test {
 protected:
  static void Run(NormArrays<T>& a, uint64_t seed) {
    const NormForwardArguments of_forward = NormForwardOf(a);
    ASSERT_EQ(emulated::RunGrid(a.forward_launch(seed), [&] { NormForward<T>(of_forward); }), "");
    const emulated::Launch backward = {
        .grid = {a.grid.blocks}, .block = {kThreads}, .shared_bytes = a.grid.shared_bytes, .seed = seed};
    const NormBackwardArguments of_backward = NormBackwardOf(a);
    ASSERT_EQ(emulated::RunGrid(backward, [&] { NormBackward<T>(of_backward); }), "");
    const emulated::Launch sums = {.grid = {a.grid.blocks_of_sums()},
                                   .block = {kThreads},
                                   .shared_bytes = NormBackwardGrid::kSharedBytesOfSums,
                                   .seed = seed};
    const NormWeightGradientsArguments of_sums = {a.partial.data(), a.gradients.data(),  a.grid.blocks,
                                                  a.grid.numbers,   a.grid.packs_of_row, 0};
    ASSERT_EQ(emulated::RunGrid(sums, [&] { NormWeightGradients<T>(of_sums); }), "");
  }

  // Beside float64, rounded where the operators write. `other_bits`: a float's sums round a few to different neighbours.
  static void Check(NormArrays<T>& a) {
    constexpr double kTiny = 1e-4;  // below it a value's own size says nothing of its error in float16
    constexpr double kBound = std::max(3 * kRounding<T>, 4e-6), kSumsBound = 4e-6;
    size_t values = 0, other_bits = 0;
    const auto expect = [&](double got, double want, double parts, const char* what, size_t row, size_t column) {
      ++values;
      if (got != AsStored<T>(want)) ++other_bits;
      ASSERT_LE(Apart(got, AsStored<T>(want), std::max(parts, kTiny)), kBound)
          << what << " of row " << row << ", column " << column << ": " << got << " and not " << want;
    };
    std::vector<double> of_weight(a.columns), of_bias(a.columns), weight_size(a.columns), bias_size(a.columns);
    for (size_t row = 0; row < a.rows; ++row) {
      const auto at = [&](size_t column) { return row * a.columns + column; };
      double mean = 0, squares = 0, of_gradient = 0, of_product = 0, sum_sizes = 0;
      for (size_t column = 0; a.carries && column < a.columns; ++column) {
        expect(a.sum[at(column)], a.input[at(column)] + a.carried[at(column)], 1, "residual", row, column);
      }
      for (size_t column = 0; a.centred() && column < a.columns; ++column) mean += a.normed()[at(column)];
      mean /= static_cast<double>(a.columns);
      for (size_t column = 0; column < a.columns; ++column) squares += std::pow(a.normed()[at(column)] - mean, 2);
      const double rstd = 1 / std::sqrt(squares / static_cast<double>(a.columns) + kNormEps);
      const auto factor = [&](size_t column) { return a.weight[column] + a.weight_plus(); };
      const auto normed = [&](size_t column) { return (a.normed()[at(column)] - mean) * rstd; };
      for (size_t column = 0; column < a.columns; ++column) {
        const double g = a.grad[at(column)] * factor(column);
        if (a.centred()) of_gradient += g / static_cast<double>(a.columns);
        of_product += g * normed(column) / static_cast<double>(a.columns);
        sum_sizes += std::abs(g) * (1 + std::abs(normed(column))) / static_cast<double>(a.columns);
      }
      ASSERT_LE(Apart(a.rstd[row], rstd, 0), kSumsBound) << row;
      if (a.centred()) {
        ASSERT_LE(Apart(a.mean[row], mean, std::max(1 / rstd, std::abs(mean))), kSumsBound) << row;
      }
      for (size_t column = 0; column < a.columns; ++column) {
        const double shift = a.centred() ? a.bias[column] : 0, size = std::abs(a.normed()[at(column)]) + std::abs(mean);
        expect(a.output[at(column)], normed(column) * factor(column) + shift,
               size * rstd * std::abs(factor(column)) + std::abs(shift), "output", row, column);
        const double dy = a.grad[at(column)], past = a.carries ? a.grad_carried[at(column)] : 0;
        const double made = rstd * (dy * factor(column) - of_gradient - normed(column) * of_product);
        const double parts = rstd * (std::abs(dy * factor(column)) + sum_sizes * (1 + size * rstd)) + std::abs(past);
        expect(a.grad_input[at(column)], AsStored<T>(made) + past, parts, "gradient", row, column);
        of_weight[column] += dy * normed(column);
        weight_size[column] += std::abs(dy) * size * rstd;
        of_bias[column] += dy;
        bias_size[column] += std::abs(dy);
      }
    }
    for (size_t column = 0; column < a.columns; ++column) {
      ASSERT_LE(Apart(a.gradients[column], of_weight[column], weight_size[column]), kSumsBound) << "weight " << column;
      if (!a.centred()) continue;
      ASSERT_LE(Apart(a.gradients[a.columns + column], of_bias[column], bias_size[column]), kSumsBound) << "bias " << column;
    }
    EXPECT_EQ(a.number, 0) << "all was finite";
    if (sizeof(T) == 2 && values > 1000) {
      EXPECT_LT(static_cast<double>(other_bits), 0.01 * static_cast<double>(values));
    }
    for (Array<T>* array : {&a.input, &a.sum, &a.output, &a.grad_input}) array->ExpectNothingWrittenAround();
    for (Array<float>* array : {&a.mean, &a.rstd, &a.partial, &a.gradients}) array->ExpectNothingWrittenAround();
  }
};
using Types = testing::Types<BFloat16Bits, Float16Bits, float>;
TYPED_TEST_SUITE(NormTest, Types);

// One row; rows that end within a block, and several blocks of them; rows of one pack, of several teams of warps, of more packs
// than lanes hold, and of more than shared memory has a place for.
TYPED_TEST(NormTest, EqualsFloat64) {
  constexpr std::pair<size_t, size_t> kShapes[] = {{1, 8}, {37, 104}, {19, 768}, {5, 1608}, {3, 4104}, {2, 6200}, {2, 12288}};
  uint64_t seed = 0;
  for (const WhichNorm kind : kNormKinds) {
    for (const auto& [rows, columns] : kShapes) {
      const bool carries = ++seed % 2 == 0;  // of each shape both, by the kinds
      NormArrays<TypeParam> arrays(kind, rows, columns, carries);
      arrays.Draw(seed);
      TestFixture::Run(arrays, seed);
      TestFixture::Check(arrays);
      if (this->HasFailure()) {
        FAIL() << "kind " << static_cast<int>(kind) << ", " << rows << " rows, " << columns << " columns, carries " << carries;
      }
    }
  }
}

// More rows than all blocks take at once: the blocks walk.
TYPED_TEST(NormTest, BlocksWalkOverTheRows) {
  NormArrays<TypeParam> arrays(WhichNorm::kLayerNorm, 300, 8, false);
  ASSERT_EQ(arrays.grid.blocks, 38u);
  arrays.grid.blocks = 5;
  arrays.Draw(3);
  TestFixture::Run(arrays, 3);
  std::fill_n(arrays.partial.data() + 5 * arrays.grid.numbers, 33 * arrays.grid.numbers, 0.0f);
  TestFixture::Check(arrays);
}

// The variance is that of the differences, not a difference of squares.
TYPED_TEST(NormTest, AMeanFarFromZero) {
  NormArrays<TypeParam> arrays(WhichNorm::kLayerNorm, 5, 768, false);
  arrays.Draw(5, /*offset=*/100);
  TestFixture::Run(arrays, 5);
  TestFixture::Check(arrays);
}

TYPED_TEST(NormTest, TwoRunsHaveTheSameBits) {
  NormArrays<TypeParam> one(WhichNorm::kLayerNorm, 37, 520, true), other(WhichNorm::kLayerNorm, 37, 520, true);
  for (NormArrays<TypeParam>* arrays : {&one, &other}) arrays->Draw(11);
  TestFixture::Run(one, 1);
  TestFixture::Run(other, 2);
  const auto same = [](auto& a, auto& b) { return std::memcmp(a.data(), b.data(), a.size() * sizeof(*a.data())) == 0; };
  EXPECT_TRUE(same(one.output, other.output));
  EXPECT_TRUE(same(one.grad_input, other.grad_input));
  EXPECT_TRUE(same(one.gradients, other.gradients));
}

// Where a set of operators or a segment separates what a kernel joins, each runs alone: the same values come out.
TYPED_TEST(NormTest, WhatIsCarriedWithinHasTheBitsOfAnOperatorOfItsOwn) {
  for (const WhichNorm kind : kNormKinds) {
    NormArrays<TypeParam> joined(kind, 9, 520, true), alone(kind, 9, 520, false);
    for (NormArrays<TypeParam>* arrays : {&joined, &alone}) arrays->Draw(13);
    for (size_t at = 0; at < alone.input.size(); ++at) alone.input.Set(at, joined.input[at] + joined.carried[at]);
    TestFixture::Run(joined, 1);
    TestFixture::Run(alone, 2);
    for (size_t at = 0; at < alone.input.size(); ++at) {
      ASSERT_EQ(joined.sum[at], alone.input[at]);
      ASSERT_EQ(joined.output[at], alone.output[at]);
      ASSERT_EQ(joined.grad_input[at], AsStored<TypeParam>(alone.grad_input[at] + joined.grad_carried[at]));
    }
    for (size_t at = 0; at < alone.gradients.size(); ++at) ASSERT_EQ(joined.gradients[at], alone.gradients[at]);
  }
}

// Of sums the place of what is added to, and of a gradient that of the gradient it is made of.
TYPED_TEST(NormTest, MayWriteWhereItReads) {
  NormArrays<TypeParam> apart(WhichNorm::kRmsNorm, 9, 4104, true), in_place(WhichNorm::kRmsNorm, 9, 4104, true);
  for (NormArrays<TypeParam>* arrays : {&apart, &in_place}) arrays->Draw(17);
  TestFixture::Run(apart, 1);
  NormForwardArguments forward = NormForwardOf(in_place);
  forward.sum = in_place.input.data();
  EXPECT_EQ(emulated::RunGrid(in_place.forward_launch(), [&] { NormForward<TypeParam>(forward); }), "");
  NormBackwardArguments backward = NormBackwardOf(in_place);
  backward.input = in_place.input.data();
  backward.grad_input = in_place.grad.data();
  const NormBackwardGrid& grid = in_place.grid;
  EXPECT_EQ(emulated::RunGrid({.grid = {grid.blocks}, .block = {kThreads}, .shared_bytes = grid.shared_bytes},
                              [&] { NormBackward<TypeParam>(backward); }),
            "");
  for (size_t at = 0; at < apart.input.size(); ++at) {
    ASSERT_EQ(in_place.input[at], apart.sum[at]);
    ASSERT_EQ(in_place.output[at], apart.output[at]);
    ASSERT_EQ(in_place.grad[at], apart.grad_input[at]);
  }
}

TYPED_TEST(NormTest, WhatIsNotFiniteComesOutAgain) {
  constexpr size_t kRows = 9, kColumns = 40, kBad = 3 * kColumns + 13;
  for (const WhichNorm kind : kNormKinds) {
    for (const double bad : {HUGE_VAL, -HUGE_VAL, std::nan("")}) {
      for (const bool in_gradient : {false, true}) {
        NormArrays<TypeParam> arrays(kind, kRows, kColumns, true);
        arrays.Draw(19);
        (in_gradient ? arrays.grad : arrays.input).Set(kBad, bad);
        TestFixture::Run(arrays, 1);
        for (size_t row = 0; row < kRows; ++row) {
          int forward = 0, backward = 0;
          for (size_t column = 0; column < kColumns; ++column) {
            forward += !std::isfinite(arrays.output[row * kColumns + column]);
            backward += !std::isfinite(arrays.grad_input[row * kColumns + column]);
          }
          EXPECT_EQ(forward > 0, row == 3 && !in_gradient) << row << " " << bad;
          EXPECT_EQ(backward > 0, row == 3) << row << " " << bad;
        }
        EXPECT_FALSE(std::isfinite(arrays.gradients[13]));
        EXPECT_TRUE(std::isnan(arrays.number));
      }
    }
  }
}

TYPED_TEST(NormTest, NothingToDoReadsAndWritesNothing) {
  EXPECT_EQ(emulated::RunGrid({.grid = {1}, .block = {kThreads}}, [] { NormForward<TypeParam>({}); }), "");
  EXPECT_EQ(emulated::RunGrid({.grid = {1}, .block = {kThreads}}, [] { NormBackward<TypeParam>({}); }), "");
  EXPECT_EQ(emulated::RunGrid({.grid = {1}, .block = {kThreads}}, [] { NormWeightGradients<TypeParam>({}); }), "");
}

TYPED_TEST(NormTest, ATensorThatDoesNotBeginAt16BytesIsSaid) {
  NormArrays<TypeParam> arrays(WhichNorm::kRmsNorm, 1, 16, false);
  NormForwardArguments forward = NormForwardOf(arrays);
  forward.input = arrays.input.data() + 1;
  EXPECT_EQ(emulated::RunGrid(arrays.forward_launch(), [&] { NormForward<TypeParam>(forward); }),
            "a 16-byte access that is not aligned");
}

// No width and no number of rows asks for more than every card has, nor for more scratch than there are blocks.
TEST(NormGridTest, FitsEveryCard) {
  for (const int64_t bytes : {2, 4}) {
    for (const bool centred : {false, true}) {
      for (int64_t columns = 8; columns <= 16384; columns += 8) {
        const NormBackwardGrid grid = GridOfNormBackward(100'000, columns, bytes, centred);
        ASSERT_LE(grid.shared_bytes, 48u << 10) << columns;
        ASSERT_LE(grid.blocks, 528u);
        ASSERT_TRUE(grid.warps_of_row >= 1 && grid.warps_of_row <= 8) << columns;
        ASSERT_TRUE(grid.sums_in_shared || grid.warps_of_row == 8) << columns << ": two teams add to the same numbers";
      }
    }
  }
  EXPECT_EQ(GridOfNormBackward(1, 4096, 2, true).blocks, 1u);
  EXPECT_EQ(GridOfNormBackward(1'000'000, 4096, 2, true).blocks, 528u);
  EXPECT_EQ(GridOfNormBackward(17, 4096, 2, true).blocks, 3u);
}

// Addresses alone: of more elements than an int counts the last row is written, and its memory is all that there is of it.
TYPED_TEST(NormTest, TheLastRowOfMoreThan2To31Elements) {
  constexpr size_t kColumns = 1 << 16, kRows = (size_t{1} << 31) / kColumns + 1, kCount = kRows * kColumns,
                   kAt = kCount - kColumns;
  const auto reserve = [](size_t bytes) {
    void* room = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(room, MAP_FAILED);
    return room;
  };
  auto* const input = static_cast<TypeParam*>(reserve(kCount * sizeof(TypeParam)));
  auto* const made = static_cast<TypeParam*>(reserve(kCount * sizeof(TypeParam)));
  auto* const partial = static_cast<float*>(reserve(kCount * sizeof(float)));
  std::vector<TypeParam> weight(kColumns, Narrow<TypeParam>(1));
  auto* const aligned = static_cast<TypeParam*>(reserve(kColumns * sizeof(TypeParam)));
  std::copy(weight.begin(), weight.end(), aligned);
  std::vector<float> rstd(kRows);
  for (size_t column = 0; column < kColumns; ++column) input[kAt + column] = Narrow<TypeParam>(column % 2 == 0 ? 2 : -2);
  const NormBackwardGrid grid = GridOfNormBackward(kRows, kColumns, sizeof(TypeParam), false);
  const NormForwardGrid forward_grid = GridOfNormForward(kRows, kColumns, sizeof(TypeParam));
  const NormForwardArguments forward = {.input = input,
                                        .carried = nullptr,
                                        .sum = nullptr,
                                        .weight = aligned,
                                        .bias = nullptr,
                                        .output = made,
                                        .mean = nullptr,
                                        .rstd = rstd.data(),
                                        .rows = kRows,
                                        .packs_of_row = grid.packs_of_row,
                                        .eps = 0,
                                        .weight_plus = 0,
                                        .warps_of_row = forward_grid.warps_of_row};
  const emulated::Launch of_last_row = {.grid = {forward_grid.blocks},
                                        .block = {kThreads},
                                        .shared_bytes = NormForwardGrid::kSharedBytes,
                                        .first_block = forward_grid.blocks - 1};
  EXPECT_EQ(emulated::RunGrid(of_last_row, [&] { NormForward<TypeParam>(forward); }), "");
  EXPECT_EQ(Wide(made[kCount - 1]), -1);
  EXPECT_EQ(rstd.back(), 0.5f);
  // Of a grid of as many blocks as rows, so that the last one's place in the scratch has no 32 bits either. dy = 1: dx = g rstd.
  for (size_t column = 0; column < kColumns; ++column) made[kAt + column] = Narrow<TypeParam>(1);
  const NormBackwardArguments backward = {.grad_output = made,
                                          .input = input,
                                          .carried = nullptr,
                                          .weight = aligned,
                                          .mean = nullptr,
                                          .rstd = rstd.data(),
                                          .grad_input = made,
                                          .partial = partial,
                                          .not_finite = nullptr,
                                          .rows = kRows,
                                          .packs_of_row = grid.packs_of_row,
                                          .warps_of_row = grid.warps_of_row,
                                          .sums_in_shared = grid.sums_in_shared,
                                          .weight_plus = 0};
  EXPECT_EQ(emulated::RunGrid({.grid = {kRows}, .block = {kThreads}, .shared_bytes = grid.shared_bytes, .first_block = kRows - 1},
                              [&] { NormBackward<TypeParam>(backward); }),
            "");
  EXPECT_EQ(Wide(made[kCount - 1]), 0.5f);
  EXPECT_EQ(partial[kCount - 1], -1);
  munmap(input, kCount * sizeof(TypeParam));
  munmap(made, kCount * sizeof(TypeParam));
  munmap(partial, kCount * sizeof(float));
  munmap(aligned, kColumns * sizeof(TypeParam));
}

}  // namespace
}  // namespace motley::kernels
