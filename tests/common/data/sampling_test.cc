#include "common/data/sampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace motley {
namespace {

// The values of docs/use/training-semantics.md, computed there by another program.
TEST(SamplingTest, AgreesWithTheDocumentedValues) {
  EXPECT_EQ(Mix64(0), 0xe220a8397b1dcdafULL);
  EXPECT_EQ(HashText(""), 0xc3817c016ba4ff30ULL);
  EXPECT_EQ(HashText("abc"), 0x29e32c04ec3f9c30ULL);
  const Permutation permutation(10, 1);
  std::vector<uint64_t> values;
  for (uint64_t i = 0; i < 10; ++i) values.push_back(permutation(i));
  EXPECT_EQ(values, (std::vector<uint64_t>{6, 7, 3, 2, 5, 8, 0, 1, 9, 4}));
  const SampleOrder order(0, "abc", 128, 100);
  EXPECT_EQ(order.Samples(0, 8, 0, 8), (std::vector<int64_t>{89, 5, 73, 69, 83, 68, 74, 44}));
  EXPECT_EQ(order.Samples(12, 8, 0, 8), (std::vector<int64_t>{4, 16, 70, 21, 31, 11, 38, 1}));
}

TEST(PermutationTest, IsABijectionOfAnyRange) {
  for (const uint64_t n : {1, 2, 3, 4, 5, 7, 16, 17, 63, 64, 65, 100, 1000, 4096, 4097, 70001}) {
    for (const uint64_t key : {0ULL, 1ULL, 0xffffffffffffffffULL}) {
      const Permutation permutation(n, key);
      std::vector<bool> seen(n, false);
      for (uint64_t i = 0; i < n; ++i) {
        const uint64_t value = permutation(i);
        ASSERT_LT(value, n);
        ASSERT_FALSE(seen[value]) << "n " << n << " key " << key << " index " << i;
        seen[value] = true;
      }
    }
  }
}

TEST(PermutationTest, HugeRangesStayInside) {
  const uint64_t n = (uint64_t{1} << 62) + 12345;
  const Permutation permutation(n, 99);
  std::set<uint64_t> seen;
  for (uint64_t i = 0; i < 1000; ++i) {
    const uint64_t value = permutation(n - 1 - i);
    EXPECT_LT(value, n);
    EXPECT_TRUE(seen.insert(value).second);
  }
}

TEST(PermutationTest, KeysGiveDifferentOrders) {
  const Permutation a(1000, 1), b(1000, 2);
  int same = 0;
  for (uint64_t i = 0; i < 1000; ++i) same += a(i) == b(i) ? 1 : 0;
  EXPECT_LT(same, 15);  // about one in a thousand by chance
}

TEST(SampleOrderTest, EachPassTakesEverySampleOnce) {
  const SampleOrder order(5, "digest", 64, 37);
  // 37 steps of 10 are ten passes.
  std::vector<int64_t> all;
  for (int64_t step = 0; step < 37; ++step) {
    const std::vector<int64_t> samples = order.Samples(step, 10, 0, 10);
    all.insert(all.end(), samples.begin(), samples.end());
  }
  std::vector<int64_t> previous;
  for (int pass = 0; pass < 10; ++pass) {
    std::vector<int64_t> samples(all.begin() + pass * 37, all.begin() + (pass + 1) * 37);
    EXPECT_NE(samples, previous) << "two passes in one order";
    previous = samples;
    std::sort(samples.begin(), samples.end());
    std::vector<int64_t> expected(37);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(samples, expected);
  }
}

TEST(SampleOrderTest, SplittingTheBatchChangesNothing) {
  const SampleOrder order(1, "d", 32, 1000);
  const std::vector<int64_t> whole = order.Samples(3, 30, 0, 30);
  std::vector<int64_t> parts;
  int64_t begin = 0;
  for (const int64_t count : {17, 0, 1, 12}) {
    const std::vector<int64_t> part = order.Samples(3, 30, begin, count);
    parts.insert(parts.end(), part.begin(), part.end());
    begin += count;
  }
  EXPECT_EQ(parts, whole);
}

TEST(SampleOrderTest, DependsOnSeedDigestAndLength) {
  const auto first = [](int64_t seed, const char* digest, int64_t seq_len) {
    return SampleOrder(seed, digest, seq_len, 1000).Samples(0, 20, 0, 20);
  };
  const std::vector<int64_t> base = first(0, "d", 32);
  EXPECT_EQ(first(0, "d", 32), base);
  EXPECT_NE(first(1, "d", 32), base);
  EXPECT_NE(first(-1, "d", 32), base);
  EXPECT_NE(first(0, "e", 32), base);
  EXPECT_NE(first(0, "d", 33), base);
}

TEST(SampleOrderTest, OneSampleIsEnough) {
  EXPECT_EQ(SampleOrder(0, "d", 8, 1).Samples(5, 3, 0, 3), (std::vector<int64_t>{0, 0, 0}));
}

}  // namespace
}  // namespace motley
