#include <gtest/gtest.h>
#include <sys/mman.h>

#include "tests/worker/engine/kernels/emulated_card.h"
#include "tests/worker/engine/kernels/kernel_data.h"
#include "worker/engine/kernels/adamw.h"

namespace motley::kernels {
namespace {

template <typename T>
class AdamWTest : public testing::Test {
 protected:
  static constexpr double kClip = 0.37, kRate = 3e-3, kDecay = 0.1, kBeta1 = 0.9, kBeta2 = 0.95, kEps = 1e-8;
  // Where a range begins in each array, in elements.
  struct Begins {
    size_t gradient = 0, parameter = 0, exp_avg = 0, exp_avg_sq = 0, cast = 0;
  };
  struct Arrays {
    Arrays(size_t count, const Begins& begins, uint64_t seed)
        : count(count),
          begins(begins),
          gradient(begins.gradient + count + 9),
          parameter(begins.parameter + count + 9),
          exp_avg(begins.exp_avg + count + 9),
          exp_avg_sq(begins.exp_avg_sq + count + 9),
          cast(begins.cast + count + 9) {
      std::mt19937_64 draw(seed);
      for (Array<float>* const array : {&gradient, &parameter, &exp_avg}) array->Draw(draw);
      exp_avg_sq.Draw(draw);
      for (size_t at = 0; at < exp_avg_sq.size(); ++at) exp_avg_sq.Set(at, std::abs(exp_avg_sq[at]));
    }
    AdamWArguments Arguments(int64_t step, bool with_cast, bool zero) {
      AdamWArguments made = {};
      made.gradient = gradient.data() + begins.gradient;
      made.parameter = parameter.data() + begins.parameter;
      made.exp_avg = exp_avg.data() + begins.exp_avg;
      made.exp_avg_sq = exp_avg_sq.data() + begins.exp_avg_sq;
      made.cast = with_cast ? cast.data() + begins.cast : nullptr;
      made.elements = static_cast<int64_t>(count);
      made.clip = static_cast<float>(kClip);
      made.decay = static_cast<float>(kRate * kDecay);
      made.beta1 = static_cast<float>(kBeta1), made.rest1 = static_cast<float>(1 - kBeta1);
      made.beta2 = static_cast<float>(kBeta2), made.rest2 = static_cast<float>(1 - kBeta2);
      made.step = static_cast<float>(kRate / (1 - std::pow(kBeta1, step)));
      made.root2 = static_cast<float>(std::sqrt(1 - std::pow(kBeta2, step)));
      made.eps = static_cast<float>(kEps);
      made.zero = zero ? 1 : 0;
      return made;
    }
    size_t count;
    Begins begins;
    Array<float> gradient, parameter, exp_avg, exp_avg_sq;
    Array<T> cast;
  };
  static unsigned Blocks(int64_t elements) {
    constexpr int64_t kOfBlock = int64_t{AdamWArguments::kTogether} * kThreads;
    return static_cast<unsigned>((elements + AdamWArguments::kTogether - 1 + kOfBlock - 1) / kOfBlock);
  }
  static std::string Launch(const AdamWArguments& arguments, uint64_t seed, unsigned more = 0) {
    return emulated::RunGrid({.grid = {Blocks(arguments.elements) + more}, .block = {kThreads}, .seed = seed},
                             [&] { AdamW<T>(arguments); });
  }

  // Elements of `got` before and behind the range stay as they were.
  template <typename Value>
  static void ExpectOthersStay(Array<Value>& got, Array<Value>& was, size_t begin, size_t count, const char* what) {
    const auto same = [&](size_t from, size_t to) {
      return std::memcmp(got.data() + from, was.data() + from, (to - from) * sizeof(Value)) == 0;
    };
    EXPECT_TRUE(same(0, begin)) << what << " before the range";
    EXPECT_TRUE(same(begin + count, got.size())) << what << " behind the range";
    got.ExpectNothingWrittenAround();
  }
  static void Check(const Begins& begins, size_t count, uint64_t seed, bool with_cast, bool zero) {
    constexpr int64_t kStep = 3;
    Arrays a(count, begins, seed), was(count, begins, seed);
    ASSERT_EQ(Launch(a.Arguments(kStep, with_cast, zero), seed, /*more=*/1), "");
    for (size_t k = 0; k < count; ++k) {
      const double g = was.gradient[begins.gradient + k] * kClip;
      const double m = kBeta1 * was.exp_avg[begins.exp_avg + k] + (1 - kBeta1) * g;
      const double v = kBeta2 * was.exp_avg_sq[begins.exp_avg_sq + k] + (1 - kBeta2) * g * g;
      const double before = was.parameter[begins.parameter + k];
      const double change = kRate / (1 - std::pow(kBeta1, kStep)) * m / (std::sqrt(v / (1 - std::pow(kBeta2, kStep))) + kEps);
      const double after = before * (1 - kRate * kDecay) - change;
      ASSERT_LE(std::abs(a.exp_avg[begins.exp_avg + k] - m), 2e-7 * (std::abs(m) + std::abs(g))) << "first moment " << k;
      ASSERT_LE(Apart(a.exp_avg_sq[begins.exp_avg_sq + k], v, 1e-20), 4e-7) << "second moment " << k;
      const double got = a.parameter[begins.parameter + k];
      ASSERT_LE(std::abs(got - after), 1.3e-7 * std::abs(before) + 2e-6 * std::abs(change)) << "parameter " << k;
      ASSERT_EQ(a.gradient[begins.gradient + k], zero ? 0 : was.gradient[begins.gradient + k]) << k;
      if (with_cast) {
        ASSERT_EQ(a.cast[begins.cast + k], AsStored<T>(got)) << "cast " << k;
      }
    }
    ExpectOthersStay(a.gradient, was.gradient, begins.gradient, count, "gradient");
    ExpectOthersStay(a.parameter, was.parameter, begins.parameter, count, "parameter");
    ExpectOthersStay(a.exp_avg, was.exp_avg, begins.exp_avg, count, "first moment");
    ExpectOthersStay(a.exp_avg_sq, was.exp_avg_sq, begins.exp_avg_sq, count, "second moment");
    ExpectOthersStay(a.cast, was.cast, begins.cast, with_cast ? count : 0, "cast");
  }
};
using AdamWTypes = testing::Types<BFloat16Bits, Float16Bits, float>;
TYPED_TEST_SUITE(AdamWTest, AdamWTypes);

TYPED_TEST(AdamWTest, EqualsFloat64) {
  for (const size_t count : {1, 7, 8, 9, 2048, 2049, 5003}) {
    for (const bool with_cast : {false, true}) {
      for (const bool zero : {false, true}) TestFixture::Check({}, count, count, with_cast, zero);
      if (this->HasFatalFailure()) return;
    }
  }
}

// Uneven shares: in every array another place between packs.
TYPED_TEST(AdamWTest, RangesBeginAnywhere) {
  for (const size_t count : {1, 3, 8, 23, 2045}) {
    for (size_t begin = 0; begin < 8; ++begin) {
      for (size_t apart = 0; apart < 8; ++apart) {
        const size_t other = (begin + apart) % 8;
        TestFixture::Check({begin, begin, begin, begin, other}, count, apart, true, true);
        TestFixture::Check({other, begin, begin, begin, 0}, count, apart, false, true);
        TestFixture::Check({begin, other, (other + 1) % 8, (other + 2) % 8, begin}, count, apart, true, false);
        if (this->HasFatalFailure()) return;
      }
    }
  }
}

TYPED_TEST(AdamWTest, EveryOrderHasTheSameBits) {
  typename TestFixture::Arrays want(5003, {1, 2, 3, 4, 5}, 1);
  ASSERT_EQ(TestFixture::Launch(want.Arguments(1, true, true), 1), "");
  for (uint64_t seed = 2; seed <= 4; ++seed) {
    typename TestFixture::Arrays again(5003, {1, 2, 3, 4, 5}, 1);
    ASSERT_EQ(TestFixture::Launch(again.Arguments(1, true, true), seed), "");
    EXPECT_EQ(std::memcmp(again.parameter.data(), want.parameter.data(), 5003 * sizeof(float)), 0);
  }
}

TYPED_TEST(AdamWTest, WhatIsNotFiniteComesOutAgain) {
  for (const double bad : {HUGE_VAL, -HUGE_VAL, std::nan("")}) {
    for (const size_t at : {0, 8, 20}) {
      typename TestFixture::Arrays arrays(21, {}, 3);
      arrays.gradient.Set(at, bad);
      ASSERT_EQ(TestFixture::Launch(arrays.Arguments(1, true, false), 1), "");
      for (size_t k = 0; k < 21; ++k) {
        for (const double number : {arrays.parameter[k], arrays.exp_avg[k], arrays.exp_avg_sq[k], arrays.cast[k]}) {
          EXPECT_EQ(std::isfinite(number), k != at) << k << " " << bad;
        }
      }
    }
  }
}

TYPED_TEST(AdamWTest, AParameterThatNothingWasLearntOfStays) {
  typename TestFixture::Arrays arrays(9, {}, 1);
  for (size_t k = 0; k < 9; ++k) {
    arrays.gradient.Set(k, 0), arrays.exp_avg.Set(k, 0), arrays.exp_avg_sq.Set(k, 0);
  }
  AdamWArguments arguments = arrays.Arguments(1, true, false);
  arguments.decay = 0;
  const float before = arrays.parameter.data()[3];
  ASSERT_EQ(TestFixture::Launch(arguments, 1), "");
  EXPECT_EQ(arrays.parameter.data()[3], before);
}

TYPED_TEST(AdamWTest, NothingToDoReadsAndWritesNothing) {
  EXPECT_EQ(emulated::RunGrid({.grid = {1}, .block = {kThreads}}, [] { AdamW<TypeParam>({}); }), "");
}

// Addresses alone: the last elements of more than 2^31.
TYPED_TEST(AdamWTest, TheLastOfMoreThan2To31Elements) {
  constexpr size_t kCount = (size_t{1} << 31) + 4099;
  const auto reserve = [](size_t bytes) {
    void* room = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(room, MAP_FAILED);
    return room;
  };
  typename TestFixture::Arrays of_arguments(1, {}, 1);
  AdamWArguments arguments = of_arguments.Arguments(1, true, true);
  float* floats[4];
  for (float*& one : floats) one = static_cast<float*>(reserve(kCount * sizeof(float)));
  auto* const cast = static_cast<TypeParam*>(reserve(kCount * sizeof(TypeParam)));
  arguments.gradient = floats[0], arguments.parameter = floats[1], arguments.exp_avg = floats[2],
  arguments.exp_avg_sq = floats[3];
  arguments.cast = cast;
  arguments.elements = kCount;
  floats[0][kCount - 1] = 2;
  const unsigned blocks = TestFixture::Blocks(arguments.elements);
  const emulated::Launch launch = {.grid = {blocks}, .block = {kThreads}, .first_block = blocks - 1};
  EXPECT_EQ(emulated::RunGrid(launch, [&] { AdamW<TypeParam>(arguments); }), "");
  EXPECT_NEAR(floats[1][kCount - 1], -TestFixture::kRate, 1e-8);
  EXPECT_EQ(Wide(cast[kCount - 1]), AsStored<TypeParam>(floats[1][kCount - 1]));
  EXPECT_EQ(floats[0][kCount - 1], 0);
  EXPECT_EQ(floats[1][kCount - 2], 0);
  for (float* const one : floats) munmap(one, kCount * sizeof(float));
  munmap(cast, kCount * sizeof(TypeParam));
}

}  // namespace
}  // namespace motley::kernels
