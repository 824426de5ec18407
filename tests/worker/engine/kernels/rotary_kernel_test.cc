#include <gtest/gtest.h>
#include <sys/mman.h>

#include <limits>

#include "tests/worker/engine/kernels/emulated_card.h"
#include "tests/worker/engine/kernels/kernel_data.h"
#include "worker/engine/kernels/rotary.h"

namespace motley::kernels {
namespace {

struct TurnedPair {
  double first, second;
};
// In float64, rounded to T where PyTorch's operators write it.
template <typename T>
TurnedPair WantTurned(double a, double b, double cos, double sin, double sign) {
  return {AsStored<T>(AsStored<T>(a * cos) - sign * b * sin), AsStored<T>(AsStored<T>(b * cos) + sign * a * sin)};
}

template <typename T>
class RotaryTest : public testing::Test {
 protected:
  // As the launcher does: the last block is not full.
  template <typename Arguments>
  static std::string Launch(void (*kernel)(Arguments), const Arguments& arguments, uint64_t seed) {
    const unsigned blocks = (arguments.packs + kThreads - 1) / kThreads;
    return emulated::RunGrid({.grid = {blocks}, .block = {kThreads}, .seed = seed}, [&] { kernel(arguments); });
  }
  // The sum of two rounded products: of float32 all are rounded, of half types the result alone.
  static void ExpectPair(double first, double second, const TurnedPair& want, double parts, const std::string& what) {
    const double bound = sizeof(T) == 2 ? 0 : 3 * kRounding<T>;  // two half types' product has at most 22 bits: nothing is lost
    ASSERT_LE(Apart(first, want.first, parts), bound) << what << ": " << first << " and not " << want.first;
    ASSERT_LE(Apart(second, want.second, parts), bound) << what << ": " << second << " and not " << want.second;
  }
  static uint32_t PacksOf(size_t elements) { return static_cast<uint32_t>(elements / Pack<T>::kElements); }

  // Rows of which the first heads turn, and what stands behind them stays.
  struct Rows {
    Rows(size_t rows, size_t heads, size_t half, size_t behind, size_t table_rows)
        : rows(rows),
          heads(heads),
          half(half),
          stride(heads * 2 * half + behind),
          table_rows(table_rows),
          data(rows * stride),
          cos(table_rows * half),
          sin(table_rows * half) {}
    RotaryArguments Arguments(float sign) {
      return {data.data(),
              cos.data(),
              sin.data(),
              static_cast<int64_t>(stride),
              PacksOf(rows * heads * half),
              PacksOf(half),
              static_cast<uint32_t>(heads),
              static_cast<uint32_t>(table_rows),
              sign,
              0};
    }
    void Draw(uint64_t seed) {
      std::mt19937_64 draw(seed);
      data.Draw(draw, 2);
      for (size_t at = 0; at < cos.size(); ++at) {
        const double angle = std::uniform_real_distribution<double>(0, 7)(draw);
        cos.Set(at, std::cos(angle));
        sin.Set(at, std::sin(angle));
      }
    }
    std::vector<double> Values() {
      std::vector<double> all(data.size());
      for (size_t at = 0; at < all.size(); ++at) all[at] = data[at];
      return all;
    }
    size_t rows, heads, half, stride, table_rows;
    Array<T> data, cos, sin;
  };
  static void RunAndCheck(Rows& a, float sign, uint64_t seed) {
    const std::vector<double> before = a.Values();
    ASSERT_EQ(Launch(Rotary<T>, a.Arguments(sign), seed), "");
    for (size_t row = 0; row < a.rows && !HasFatalFailure(); ++row) {
      const size_t angles = row % a.table_rows * a.half;
      for (size_t head = 0; head < a.heads; ++head) {
        for (size_t k = 0; k < a.half; ++k) {
          const size_t first = row * a.stride + head * 2 * a.half + k, second = first + a.half;
          const TurnedPair want = WantTurned<T>(before[first], before[second], a.cos[angles + k], a.sin[angles + k], sign);
          ExpectPair(a.data[first], a.data[second], want, std::abs(before[first]) + std::abs(before[second]),
                     "row " + std::to_string(row) + ", head " + std::to_string(head) + ", " + std::to_string(k));
        }
      }
      for (size_t at = row * a.stride + a.heads * 2 * a.half; at < (row + 1) * a.stride; ++at) {
        ASSERT_EQ(a.data[at], before[at]) << "behind the heads of row " << row;
      }
    }
    for (Array<T>* array : {&a.data, &a.cos, &a.sin}) array->ExpectNothingWrittenAround();
  }
};
using Types = testing::Types<BFloat16Bits, Float16Bits, float>;
TYPED_TEST_SUITE(RotaryTest, Types);

TYPED_TEST(RotaryTest, EqualsFloat64ThereAndBack) {
  struct Shape {
    size_t rows, heads, half, behind, table_rows;
  };
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    for (const auto& [rows, heads, half, behind, table_rows] : {Shape{1, 1, 8, 0, 1},
                                                                {7, 3, 32, 16, 7},
                                                                {22, 5, 40, 80, 11},
                                                                {9, 2, 48, 8, 3},
                                                                {5, 3, 64, 128, 5},
                                                                {3, 2, 128, 256, 3}}) {
      typename TestFixture::Rows a(rows, heads, half, behind, table_rows);
      a.Draw(seed);
      TestFixture::RunAndCheck(a, 1, seed);
      TestFixture::RunAndCheck(a, -1, seed);
      if (this->HasFatalFailure()) return;
    }
  }
}

// Every value of a half type as a head's first half, then its second; of float32 those of bfloat16.
TYPED_TEST(RotaryTest, EveryValue) {
  using Half = std::conditional_t<sizeof(TypeParam) == 2, TypeParam, BFloat16Bits>;
  for (const bool second : {false, true}) {
    typename TestFixture::Rows a(64, 16, 64, 8, 1);
    a.Draw(second ? 5 : 6);
    for (uint32_t bits = 0; bits < 65536; ++bits) {
      const size_t row = bits / 1024, head = bits % 1024 / 64, k = bits % 64;
      a.data.Set(row * a.stride + head * 128 + k + (second ? 64 : 0), Wide(Half{static_cast<uint16_t>(bits)}));
    }
    TestFixture::RunAndCheck(a, second ? -1 : 1, 7);
  }
}

TYPED_TEST(RotaryTest, WhatIsNotFiniteComesOutAgainInItsPairAlone) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double bad : {kInfinity, -kInfinity, std::nan("")}) {
    for (const size_t at : {size_t{3}, size_t{8 + 5}}) {
      typename TestFixture::Rows a(1, 1, 8, 0, 1);
      a.Draw(at);
      a.data.Set(at, bad);
      ASSERT_EQ(TestFixture::Launch(Rotary<TypeParam>, a.Arguments(1), 1), "");
      for (size_t k = 0; k < 16; ++k) EXPECT_EQ(std::isfinite(a.data[k]), k % 8 != at % 8) << k << " of " << bad;
    }
  }
}

TYPED_TEST(RotaryTest, NothingToDoReadsAndWritesNothing) {
  EXPECT_EQ(emulated::RunGrid({.block = {kThreads}}, [] { Rotary<TypeParam>({}); }), "");
  EXPECT_EQ(emulated::RunGrid({.block = {kThreads}}, [] { PackHeads<TypeParam>({}); }), "");
}

TYPED_TEST(RotaryTest, RowsThatDoNotBeginAt16BytesAreSaid) {
  typename TestFixture::Rows a(2, 1, 8, 1, 1);
  a.Draw(1);
  EXPECT_EQ(TestFixture::Launch(Rotary<TypeParam>, a.Arguments(1), 1), "a 16-byte access that is not aligned");
}

// How attention's kernels lay out what they return: heads before positions or behind them, with gaps or none.
enum class HeadsLie { kHeadsFirst, kPositionsFirst, kWithGaps };

template <typename T>
struct LaidHeads {
  LaidHeads(HeadsLie layout, size_t samples, size_t heads, size_t seq_len, size_t dim)
      : heads(heads),
        gap(layout == HeadsLie::kWithGaps ? 16 : 0),
        head_stride(layout == HeadsLie::kHeadsFirst ? seq_len * dim : dim + gap),
        position_stride(layout == HeadsLie::kHeadsFirst ? dim : heads * (dim + gap)),
        sample_stride(heads * seq_len * (dim + gap)),
        data(samples * sample_stride) {}
  HeadsPlace Place() {
    return {data.data(), static_cast<int64_t>(sample_stride), static_cast<int64_t>(head_stride),
            static_cast<int64_t>(position_stride)};
  }
  double At(size_t sample, size_t head, size_t position, size_t k) {
    return data[sample * sample_stride + head * head_stride + position * position_stride + k];
  }
  size_t heads, gap, head_stride, position_stride, sample_stride;
  Array<T> data;
};

TYPED_TEST(RotaryTest, GradientsStandSideBySideAndAreTurnedBack) {
  struct Shape {
    size_t samples, heads, kv_heads, seq_len, half, table_rows;
  };
  uint64_t seed = 0;
  for (const HeadsLie layout : {HeadsLie::kHeadsFirst, HeadsLie::kPositionsFirst, HeadsLie::kWithGaps}) {
    for (const auto& [samples, heads, kv_heads, seq_len, half, table_rows] : {Shape{1, 1, 1, 1, 8, 1},
                                                                              {2, 6, 2, 7, 32, 7},
                                                                              {3, 2, 2, 11, 40, 33},
                                                                              {1, 3, 1, 5, 48, 5},
                                                                              {2, 4, 1, 3, 64, 6},
                                                                              {1, 2, 1, 4, 128, 4}}) {
      const size_t all = heads + 2 * kv_heads, rows = samples * seq_len;
      LaidHeads<TypeParam> q(layout, samples, heads, seq_len, 2 * half), k(layout, samples, kv_heads, seq_len, 2 * half),
          v(HeadsLie::kPositionsFirst, samples, kv_heads, seq_len, 2 * half);
      Array<TypeParam> output(rows * all * 2 * half), cos(table_rows * half), sin(table_rows * half);
      std::mt19937_64 draw(++seed);
      for (Array<TypeParam>* array : {&q.data, &k.data, &v.data, &cos, &sin}) array->Draw(draw);
      const auto as32 = [](size_t count) { return static_cast<uint32_t>(count); };
      const PackHeadsArguments arguments = {q.Place(),
                                            k.Place(),
                                            v.Place(),
                                            output.data(),
                                            cos.data(),
                                            sin.data(),
                                            TestFixture::PacksOf(rows * all * half),
                                            TestFixture::PacksOf(half),
                                            as32(heads),
                                            as32(kv_heads),
                                            as32(seq_len),
                                            as32(table_rows)};
      ASSERT_EQ(TestFixture::Launch(PackHeads<TypeParam>, arguments, seed), "");
      for (size_t row = 0; row < rows; ++row) {
        const size_t sample = row / seq_len, position = row % seq_len, angles = row % table_rows * half;
        for (size_t head = 0; head < all; ++head) {
          LaidHeads<TypeParam>& from = head < heads ? q : head < heads + kv_heads ? k : v;
          const size_t of = head < heads ? head : (head - heads) % kv_heads;
          for (size_t i = 0; i < half; ++i) {
            const double a = from.At(sample, of, position, i), b = from.At(sample, of, position, i + half);
            const TurnedPair want =
                &from == &v ? TurnedPair{a, b} : WantTurned<TypeParam>(a, b, cos[angles + i], sin[angles + i], -1);
            const size_t at = (row * all + head) * 2 * half + i;
            TestFixture::ExpectPair(output[at], output[at + half], want, std::abs(a) + std::abs(b),
                                    "row " + std::to_string(row) + ", head " + std::to_string(head));
            if (this->HasFatalFailure()) return;
          }
        }
      }
      for (Array<TypeParam>* array : {&q.data, &k.data, &v.data, &output, &cos, &sin}) array->ExpectNothingWrittenAround();
    }
  }
}

TYPED_TEST(RotaryTest, OfGradientsThatAreNotFiniteTheirPairsAloneAreNot) {
  for (const size_t head : {size_t{0}, size_t{1}, size_t{2}}) {  // q, k, v
    LaidHeads<TypeParam> q(HeadsLie::kHeadsFirst, 1, 1, 1, 16), k(HeadsLie::kHeadsFirst, 1, 1, 1, 16),
        v(HeadsLie::kHeadsFirst, 1, 1, 1, 16);
    Array<TypeParam> output(48), cos(8), sin(8);
    std::mt19937_64 draw(head);
    for (Array<TypeParam>* array : {&q.data, &k.data, &v.data, &cos, &sin}) array->Draw(draw);
    (head == 0 ? q : head == 1 ? k : v).data.Set(5, std::nan(""));
    const PackHeadsArguments arguments = {q.Place(),
                                          k.Place(),
                                          v.Place(),
                                          output.data(),
                                          cos.data(),
                                          sin.data(),
                                          TestFixture::PacksOf(24),
                                          TestFixture::PacksOf(8),
                                          1,
                                          1,
                                          1,
                                          1};
    ASSERT_EQ(TestFixture::Launch(PackHeads<TypeParam>, arguments, 1), "");
    for (size_t at = 0; at < 48; ++at) {
      const bool bad = at / 16 == head && (at % 16 == 5 || (head < 2 && at % 16 == 13));
      EXPECT_EQ(std::isfinite(output[at]), !bad) << at;
    }
  }
}

// Addresses alone: of more elements than an int counts the last pack is written, and its memory is all that there is of it.
TYPED_TEST(RotaryTest, TheLastPackOfMoreThan2To31Elements) {
  constexpr size_t kHead = 128, kHeads = 512, kColumns = kHead * kHeads, kRows = (size_t{1} << 31) / kColumns + 1;
  constexpr size_t kCount = kRows * kColumns, kBytes = kCount * sizeof(TypeParam);
  const auto reserve = [] {
    void* room = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(room, MAP_FAILED);
    return static_cast<TypeParam*>(room);
  };
  TypeParam *rows = reserve(), *output = reserve();
  Array<TypeParam> cos(kHead / 2), sin(kHead / 2);
  for (size_t at = 0; at < kHead / 2; ++at) {
    cos.Set(at, 0.5);
    sin.Set(at, 1);
  }
  rows[kCount - 1] = Narrow<TypeParam>(4);
  const uint32_t packs = TestFixture::PacksOf(kCount / 2);
  const unsigned last = packs / kThreads - 1;
  const emulated::Launch launch = {.grid = {last + 1}, .block = {kThreads}, .first_block = last};
  const uint32_t half = TestFixture::PacksOf(kHead / 2);
  const auto as32 = [](size_t count) { return static_cast<uint32_t>(count); };
  const HeadsPlace all = {rows, kCount, kHead, kColumns}, none = {rows, 0, 0, 0};
  const PackHeadsArguments gradients = {all,   none, none,         output, cos.data(),  sin.data(),
                                        packs, half, as32(kHeads), 0,      as32(kRows), 1};
  EXPECT_EQ(emulated::RunGrid(launch, [&] { PackHeads<TypeParam>(gradients); }), "");
  EXPECT_EQ(Wide(output[kCount - 1]), 2);
  EXPECT_EQ(Wide(output[kCount - 1 - kHead / 2]), 4);
  const RotaryArguments heads = {rows, cos.data(), sin.data(), kColumns, packs, half, as32(kHeads), 1, 1, 0};
  EXPECT_EQ(emulated::RunGrid(launch, [&] { Rotary<TypeParam>(heads); }), "");
  EXPECT_EQ(Wide(rows[kCount - 1]), 2);
  EXPECT_EQ(Wide(rows[kCount - 1 - kHead / 2]), -4);
  munmap(rows, kBytes);
  munmap(output, kBytes);
}

}  // namespace
}  // namespace motley::kernels
