#include <gtest/gtest.h>
#include <sys/mman.h>

#include "tests/worker/engine/kernels/emulated_card.h"
#include "tests/worker/engine/kernels/kernel_data.h"
#include "worker/engine/kernels/residual.h"

namespace motley::kernels {
namespace {

template <typename T>
class ResidualTest : public testing::Test {
 protected:
  static std::string Run(Array<T>& sum, Array<T>& carried, float& number, uint64_t seed = 1) {
    const auto packs = static_cast<uint32_t>(sum.size() / Pack<T>::kElements);
    const ResidualForwardArguments arguments = {sum.data(), carried.data(), &number, packs, 0};
    return emulated::RunGrid({.grid = {(packs + kThreads - 1) / kThreads}, .block = {kThreads}, .seed = seed},
                             [&] { ResidualForward<T>(arguments); });
  }
};
using ResidualTypes = testing::Types<BFloat16Bits, Float16Bits, float>;
TYPED_TEST_SUITE(ResidualTest, ResidualTypes);

TYPED_TEST(ResidualTest, EqualsFloat64ToTheBit) {
  for (const size_t elements : {8, 16, 2048, 2056, 4104}) {
    Array<TypeParam> sum(elements), carried(elements);
    std::mt19937_64 draw(elements);
    sum.Draw(draw, 2);
    carried.Draw(draw);
    std::vector<double> want;
    for (size_t at = 0; at < elements; ++at) want.push_back(AsStored<TypeParam>(sum[at] + carried[at]));
    float number = 7;
    ASSERT_EQ(TestFixture::Run(sum, carried, number, elements), "");
    for (size_t at = 0; at < elements; ++at) ASSERT_EQ(sum[at], want[at]) << at;
    EXPECT_EQ(number, 7) << "all was finite";
    sum.ExpectNothingWrittenAround();
    carried.ExpectNothingWrittenAround();
  }
}

TYPED_TEST(ResidualTest, WhatIsNotFiniteIsMarked) {
  for (const double bad : {HUGE_VAL, -HUGE_VAL, std::nan("")}) {
    for (const bool in_carried : {false, true}) {
      for (const size_t at : {0, 1001, 2055}) {
        Array<TypeParam> sum(2056), carried(2056);
        std::mt19937_64 draw(at);
        sum.Draw(draw);
        carried.Draw(draw);
        (in_carried ? carried : sum).Set(at, bad);
        float number = 0;
        ASSERT_EQ(TestFixture::Run(sum, carried, number), "");
        EXPECT_TRUE(std::isnan(number)) << bad << " " << at;
        EXPECT_FALSE(std::isfinite(sum[at]));
      }
    }
  }
}

// Both are finite, and their sum is too large for the type; another one is just not.
TYPED_TEST(ResidualTest, ASumThatIsTooLargeIsMarked) {
  const double most = sizeof(TypeParam) == 4 ? 3.4028234e38 : std::is_same_v<TypeParam, BFloat16Bits> ? 3.3895e38 : 65504;
  for (const double other : {most / 2, 0.0}) {
    Array<TypeParam> sum(8), carried(8);
    for (size_t at = 0; at < 8; ++at) {
      sum.Set(at, most);
      carried.Set(at, other);
    }
    float number = 0;
    ASSERT_EQ(TestFixture::Run(sum, carried, number), "");
    EXPECT_EQ(std::isnan(number), other > 0);
  }
}

TYPED_TEST(ResidualTest, NothingToDoReadsAndWritesNothing) {
  EXPECT_EQ(emulated::RunGrid({.grid = {1}, .block = {kThreads}}, [] { ResidualForward<TypeParam>({}); }), "");
}

// Addresses alone: of more elements than an int counts.
TYPED_TEST(ResidualTest, TheLastPackOfMoreThan2To31Elements) {
  constexpr size_t kCount = (size_t{1} << 31) + (size_t{1} << 16);
  const auto reserve = [] {
    void* room =
        mmap(nullptr, kCount * sizeof(TypeParam), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(room, MAP_FAILED);
    return static_cast<TypeParam*>(room);
  };
  TypeParam *sum = reserve(), *carried = reserve();
  sum[kCount - 1] = carried[kCount - 1] = Narrow<TypeParam>(1);
  float number = 0;
  const auto packs = static_cast<uint32_t>(kCount / Pack<TypeParam>::kElements);
  const unsigned last = packs / kThreads - 1;
  EXPECT_EQ(emulated::RunGrid({.grid = {last + 1}, .block = {kThreads}, .first_block = last},
                              [&] {
                                ResidualForward<TypeParam>({sum, carried, &number, packs, 0});
                              }),
            "");
  EXPECT_EQ(Wide(sum[kCount - 1]), 2);
  munmap(sum, kCount * sizeof(TypeParam));
  munmap(carried, kCount * sizeof(TypeParam));
}

}  // namespace
}  // namespace motley::kernels
