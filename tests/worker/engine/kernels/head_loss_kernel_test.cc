#include <gtest/gtest.h>
#include <sys/mman.h>

#include <limits>

#include "tests/worker/engine/kernels/emulated_card.h"
#include "tests/worker/engine/kernels/kernel_data.h"
#include "worker/engine/kernels/head_loss.h"

namespace motley::kernels {
namespace {

constexpr float kLossScale = 0.37f;

// What logits are stored as, and what the gradient is.
template <typename Logit, typename T>
struct LogitsOf {
  using LogitType = Logit;
  using Type = T;
};

template <typename Types>
class HeadLossTest : public testing::Test {
 protected:
  using Logit = typename Types::LogitType;
  using T = typename Types::Type;

  struct Arrays {
    Arrays(size_t rows, size_t columns, size_t words, uint64_t seed, double scale = 2)
        : rows(rows), columns(columns), words(words), logits(rows * columns), gradient(rows * columns), losses(rows) {
      std::mt19937_64 draw(seed);
      logits.Draw(draw, scale);
      for (size_t row = 0; row < rows; ++row) {
        targets.push_back(static_cast<int64_t>(draw() % words));
        for (size_t column = words; column < columns; ++column) logits.Set(row * columns + column, -HUGE_VAL);
      }
    }
    HeadLossArguments Arguments() {
      return {logits.data(),
              gradient.data(),
              targets.data(),
              losses.data(),
              static_cast<int64_t>(columns),
              static_cast<uint32_t>(rows),
              static_cast<uint32_t>(words),
              kLossScale,
              sizeof(Logit) != sizeof(T)};
    }
    size_t rows, columns, words;
    Array<Logit> logits;
    Array<T> gradient;
    Array<float> losses;
    std::vector<int64_t> targets;
  };
  // `more`: blocks behind the last row.
  static std::string Launch(const HeadLossArguments& arguments, uint64_t seed, unsigned threads = 256, unsigned more = 0) {
    return emulated::RunGrid(
        {.grid = {arguments.rows + more}, .block = {threads}, .shared_bytes = HeadLossArguments::kSharedBytes, .seed = seed},
        [&] { HeadLoss<T>(arguments); });
  }

  struct Want {
    double greatest = -HUGE_VAL, sum = 0, loss = std::nan("");
    Want(Arrays& a, size_t row) {
      for (size_t column = 0; column < a.columns; ++column) greatest = std::max(greatest, a.logits[row * a.columns + column]);
      for (size_t column = 0; column < a.columns; ++column) sum += std::exp(a.logits[row * a.columns + column] - greatest);
      const int64_t target = a.targets[row];
      if (target < 0 || target >= static_cast<int64_t>(a.words)) return;
      loss = std::log(sum) + greatest - a.logits[row * a.columns + static_cast<size_t>(target)];
    }
  };
  // Against float64. In half types few values have other bits than float64's rounded ones.
  static void Check(Arrays& a) {
    size_t other_bits = 0;
    for (size_t row = 0; row < a.rows; ++row) {
      const Want want(a, row);
      ASSERT_LE(Apart(a.losses[row], want.loss, 1), 3e-6) << "row " << row << ": " << a.losses[row] << ", not " << want.loss;
      for (size_t column = 0; column < a.columns; ++column) {
        const size_t at = row * a.columns + column;
        const double softmax = std::exp(a.logits[at] - want.greatest) / want.sum;
        const bool is_target = static_cast<int64_t>(column) == a.targets[row];
        const double exact = kLossScale * (is_target ? softmax - 1 : softmax), got = a.gradient[at];
        if (column >= a.words) {
          ASSERT_EQ(got, 0) << "behind the words";
          continue;
        }
        const double bound = kLossScale * (3e-6 * softmax + 2e-7 * is_target) + 1.01 * kRounding<T> * std::abs(exact) +
                             (std::is_same_v<T, Float16Bits> ? 0x1p-25 : 0x1p-126);
        ASSERT_LE(std::abs(got - exact), bound) << "gradient of row " << row << ", column " << column << ": " << got;
        if (got != AsStored<T>(exact)) ++other_bits;
      }
    }
    if (sizeof(T) == 2) {
      EXPECT_LT(static_cast<double>(other_bits), 1 + 0.01 * static_cast<double>(a.gradient.size()));
    }
    a.gradient.ExpectNothingWrittenAround();
    a.losses.ExpectNothingWrittenAround();
    a.logits.ExpectNothingWrittenAround();
  }
  template <typename Value>
  static bool SameBits(Array<Value>& a, Array<Value>& b) {
    return std::memcmp(a.data(), b.data(), a.size() * sizeof(Value)) == 0;
  }
};
using HeadLossTypes = testing::Types<LogitsOf<BFloat16Bits, BFloat16Bits>, LogitsOf<Float16Bits, Float16Bits>,
                                     LogitsOf<float, float>, LogitsOf<float, BFloat16Bits>, LogitsOf<float, Float16Bits>>;
TYPED_TEST_SUITE(HeadLossTest, HeadLossTypes);

TYPED_TEST(HeadLossTest, EqualsFloat64) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    for (const auto& [rows, columns, words] :
         {std::tuple<size_t, size_t, size_t>{1, 8, 8}, {3, 64, 61}, {2, 1024, 961}, {7, 1032, 1032}, {5, 8384, 8321}}) {
      for (const unsigned threads : {32u, 256u}) {
        typename TestFixture::Arrays arrays(rows, columns, words, seed);
        ASSERT_EQ(TestFixture::Launch(arrays.Arguments(), seed, threads, /*more=*/2), "");
        TestFixture::Check(arrays);
        if (this->HasFatalFailure()) return;
      }
    }
  }
}

// GPT-2's and Llama 3's, by as many threads as a card has them.
TYPED_TEST(HeadLossTest, VocabulariesOfModels) {
  for (const auto& [columns, words] : {std::pair<size_t, size_t>{50304, 50257}, {128256, 128256}}) {
    typename TestFixture::Arrays arrays(1, columns, words, columns);
    ASSERT_EQ(TestFixture::Launch(arrays.Arguments(), 5, HeadLossArguments::kBlockThreads), "");
    TestFixture::Check(arrays);
  }
}

TYPED_TEST(HeadLossTest, LogitsFarFromZeroAndFarFromEachOther) {
  for (const double scale : {1e-3, 100.0, 5000.0}) {
    typename TestFixture::Arrays arrays(3, 520, 513, 9, scale);
    for (size_t column = 0; column < 512; ++column) arrays.logits.Set(column, 4000 + arrays.logits[column] / scale);
    arrays.targets[1] = 0;
    arrays.targets[2] = 512;
    ASSERT_EQ(TestFixture::Launch(arrays.Arguments(), 3), "");
    TestFixture::Check(arrays);
  }
}

TYPED_TEST(HeadLossTest, EveryOrderHasTheSameBitsAndTheGradientMayTakeTheLogitsPlace) {
  typename TestFixture::Arrays want(5, 4160, 4100, 4);
  ASSERT_EQ(TestFixture::Launch(want.Arguments(), 1), "");
  for (uint64_t seed = 2; seed <= 6; ++seed) {
    typename TestFixture::Arrays again(5, 4160, 4100, 4);
    ASSERT_EQ(TestFixture::Launch(again.Arguments(), seed), "");
    EXPECT_TRUE(TestFixture::SameBits(again.gradient, want.gradient));
    EXPECT_TRUE(TestFixture::SameBits(again.losses, want.losses));
    typename TestFixture::Arrays alone(5, 4160, 4100, 4);
    HeadLossArguments arguments = alone.Arguments();
    arguments.gradient = nullptr;
    ASSERT_EQ(TestFixture::Launch(arguments, seed), "");
    EXPECT_TRUE(TestFixture::SameBits(alone.losses, want.losses));
    if constexpr (std::is_same_v<typename TypeParam::LogitType, typename TypeParam::Type>) {
      arguments.gradient = alone.logits.data();
      ASSERT_EQ(TestFixture::Launch(arguments, seed), "");
      EXPECT_TRUE(TestFixture::SameBits(alone.logits, want.gradient));
      EXPECT_TRUE(TestFixture::SameBits(alone.losses, want.losses));
      alone.logits.ExpectNothingWrittenAround();
    }
  }
}

TYPED_TEST(HeadLossTest, WhatIsNotFiniteComesOutAgain) {
  constexpr size_t kColumns = 2056;
  for (const double bad : {HUGE_VAL, -HUGE_VAL, std::nan("")}) {
    for (const size_t at : {size_t{0}, size_t{13}, size_t{2051}}) {
      typename TestFixture::Arrays arrays(3, kColumns, kColumns, at);
      arrays.targets = {1, 2, 3};
      arrays.logits.Set(kColumns + at, bad);
      ASSERT_EQ(TestFixture::Launch(arrays.Arguments(), 1), "");
      const bool is_no_probability = bad == -HUGE_VAL;  // and a number
      for (size_t row = 0; row < 3; ++row) {
        const bool finite = row != 1 || is_no_probability;
        EXPECT_EQ(std::isfinite(arrays.losses[row]), finite) << row << " " << bad;
        for (const size_t column : {size_t{0}, at, kColumns - 1}) {
          EXPECT_EQ(std::isfinite(arrays.gradient[row * kColumns + column]), finite) << row << " " << bad;
        }
      }
      if (is_no_probability) {
        EXPECT_EQ(arrays.gradient[kColumns + at], 0);
      }
    }
  }
}

TYPED_TEST(HeadLossTest, RowsOfNoProbabilityAtAllAreNoNumbers) {
  typename TestFixture::Arrays arrays(2, 1032, 1032, 1);
  for (size_t column = 0; column < 1032; ++column) arrays.logits.Set(column, -HUGE_VAL);
  arrays.logits.Set(1032 + 5, -HUGE_VAL);
  arrays.targets[1] = 5;
  ASSERT_EQ(TestFixture::Launch(arrays.Arguments(), 1), "");
  EXPECT_TRUE(std::isnan(arrays.losses[0]));
  EXPECT_TRUE(std::isnan(arrays.gradient[0]));
  EXPECT_EQ(arrays.losses[1], HUGE_VAL) << "of a target without probability";
}

// Nothing is read or written where it would stand.
TYPED_TEST(HeadLossTest, ATargetThatIsNoWordIsNoNumber) {
  for (const int64_t target :
       {int64_t{-1}, int64_t{1001}, int64_t{1007}, int64_t{1008}, int64_t{1} << 40, std::numeric_limits<int64_t>::min()}) {
    typename TestFixture::Arrays arrays(2, 1008, 1001, 3);
    arrays.targets[0] = target;
    ASSERT_EQ(TestFixture::Launch(arrays.Arguments(), 1), "");
    EXPECT_TRUE(std::isnan(arrays.losses[0])) << target;
    EXPECT_TRUE(std::isfinite(arrays.losses[1]));
    arrays.gradient.ExpectNothingWrittenAround();
  }
}

TYPED_TEST(HeadLossTest, NothingToDoReadsAndWritesNothing) {
  EXPECT_EQ(emulated::RunGrid({.grid = {1}, .block = {HeadLossArguments::kBlockThreads}},
                              [] { HeadLoss<typename TypeParam::Type>({}); }),
            "");
}

TYPED_TEST(HeadLossTest, ATensorThatDoesNotBeginAt16BytesIsSaid) {
  typename TestFixture::Arrays arrays(1, 16, 16, 1);
  HeadLossArguments arguments = arrays.Arguments();
  arguments.logits = arrays.logits.data() + 1;
  EXPECT_EQ(TestFixture::Launch(arguments, 1), "a 16-byte access that is not aligned");
}

// Addresses alone: the last row of more than 2^31 elements.
TYPED_TEST(HeadLossTest, TheLastRowOfMoreThan2To31Elements) {
  using Logit = typename TypeParam::LogitType;
  using T = typename TypeParam::Type;
  constexpr size_t kColumns = 1 << 16, kRows = (size_t{1} << 31) / kColumns + 2, kCount = kRows * kColumns;
  const auto reserve = [](size_t bytes) {
    void* room = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(room, MAP_FAILED);
    return room;
  };
  auto* const logits = static_cast<Logit*>(reserve(kCount * sizeof(Logit)));
  auto* const gradient = static_cast<T*>(reserve(kCount * sizeof(T)));
  std::vector<int64_t> targets(kRows, kColumns - 1);
  std::vector<float> losses(kRows, -1);
  logits[kCount - 1] = Narrow<Logit>(8);
  const HeadLossArguments arguments = {
      logits, gradient, targets.data(), losses.data(), kColumns, kRows, kColumns, kLossScale, sizeof(Logit) != sizeof(T)};
  const emulated::Launch launch = {
      .grid = {kRows}, .block = {256}, .shared_bytes = HeadLossArguments::kSharedBytes, .first_block = kRows - 1};
  EXPECT_EQ(emulated::RunGrid(launch, [&] { HeadLoss<T>(arguments); }), "");
  const double sum = std::exp(8) + kColumns - 1;
  EXPECT_NEAR(losses[kRows - 1], std::log(sum) - 8, 1e-5);
  EXPECT_EQ(losses[kRows - 2], -1);
  EXPECT_LE(Apart(Wide(gradient[kCount - 1]), kLossScale * (std::exp(8) / sum - 1), 1e-4), 2 * kRounding<T> + 1e-5);
  munmap(logits, kCount * sizeof(Logit));
  munmap(gradient, kCount * sizeof(T));
}

}  // namespace
}  // namespace motley::kernels
