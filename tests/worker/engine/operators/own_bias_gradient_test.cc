// Biases' gradients by a kernel of our own, which a fake driver runs over host memory, beside PyTorch's operators.
#include "worker/engine/operators/own_bias_gradient.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/worker/engine/kernels/open_fake_kernels.h"
#include "worker/engine/operators/projection.h"

namespace motley::engine {
namespace {

class OwnBiasGradientTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(kernels_.ok()) << kernels_.status(); }
  // What is added to a bias's gradient of ones, of `type`.
  at::Tensor Gradient(const at::Tensor& rows, at::ScalarType type, const KernelLauncher* kernels) const {
    const at::Tensor input = at::ones({rows.size(0), 8}, rows.options());
    at::Tensor weight = at::zeros({8, rows.size(1)}, at::TensorOptions(type)), bias = at::ones({rows.size(1)}, type);
    ProjectionBackwardWeight(rows, input, WeightLayout::kInOut, weight, bias, kernels);
    return bias;
  }
  const KernelLauncher* kernels() const { return kernels_->get(); }
  static at::Tensor Draw(int64_t rows, int64_t columns, at::ScalarType type) {
    at::manual_seed(7);
    return at::randn({rows, columns}).to(type);
  }

  const absl::StatusOr<std::unique_ptr<KernelLauncher>> kernels_ = LoadFakeKernels();
};

TEST_F(OwnBiasGradientTest, IsPyTorchsAndTwiceTheSame) {
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf, at::kFloat}) {
    for (const auto& [rows, columns, launches] : {std::tuple{1, 8, 1}, {37, 104, 1}, {256, 72, 1}, {257, 72, 2}, {700, 200, 2}}) {
      const at::Tensor grad = Draw(rows, columns, type);
      const long before = FakeLaunches();
      const at::Tensor got = Gradient(grad, at::kFloat, kernels());
      EXPECT_EQ(FakeLaunches(), before + launches);
      const at::Tensor want = grad.to(at::kDouble).sum(0) + 1;
      EXPECT_LT((got - want).abs().max().item<double>(), 1e-6 * (rows + 1)) << rows << " " << columns;
      EXPECT_LT((Gradient(grad, at::kFloat, nullptr) - got).abs().max().item<double>(), 1e-6 * (rows + 1));
      EXPECT_TRUE(Gradient(grad, at::kFloat, kernels()).equal(got));
    }
  }
}

TEST_F(OwnBiasGradientTest, WhatItDoesNotTakeIsPyTorchsToTheBit) {
  const long before = FakeLaunches();
  for (const auto& [columns, type, gradient] : {std::tuple{int64_t{12}, at::kBFloat16, at::kFloat},  // columns
                                                {int64_t{16}, at::kBFloat16, at::kBFloat16},         // no float32 to add to
                                                {int64_t{16}, at::kDouble, at::kDouble}}) {
    const at::Tensor grad = Draw(5, columns, type);
    EXPECT_TRUE(Gradient(grad, gradient, kernels()).equal(Gradient(grad, gradient, nullptr)));
  }
  EXPECT_EQ(FakeLaunches(), before);
}

}  // namespace
}  // namespace motley::engine
