#include "worker/engine/operators/borders.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace motley::engine {
namespace {

std::vector<int64_t> NumbersOf(const at::Tensor& tensor) {
  const at::Tensor wide = tensor.to(at::kLong);
  return {wide.const_data_ptr<int64_t>(), wide.const_data_ptr<int64_t>() + wide.numel()};
}

TEST(BordersTest, SamplesLieOneAfterTheOther) {
  const Borders borders = MakeBorders({{3, 1, 2}, {6}, {1, 5}}, at::kCPU);
  EXPECT_EQ(NumbersOf(borders.cu_seqlens), (std::vector<int64_t>{0, 3, 4, 6, 12, 13, 18}));
  EXPECT_EQ(NumbersOf(borders.positions), (std::vector<int64_t>{0, 1, 2, 0, 0, 1, 0, 1, 2, 3, 4, 5, 0, 0, 1, 2, 3, 4}));
  EXPECT_EQ(borders.cu_seqlens.scalar_type(), at::kInt);
  EXPECT_EQ(borders.positions.scalar_type(), at::kInt);
  EXPECT_EQ(DocumentsIn(borders), 6);
  EXPECT_EQ(LongestDocument(borders), 6);
}

TEST(BordersTest, SamplesOfOneDocumentEachAreWhole) {
  const Borders whole = MakeBorders({{6}, {6}}, at::kCPU), cut = MakeBorders({{6}, {5, 1}}, at::kCPU);
  EXPECT_TRUE(AreSamples(nullptr));
  EXPECT_TRUE(AreSamples(&whole));
  EXPECT_FALSE(AreSamples(&cut));
}

}  // namespace
}  // namespace motley::engine
