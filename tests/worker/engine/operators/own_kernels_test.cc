// Operators by kernels of our own, which a fake driver runs over host memory, beside PyTorch's.
#include "worker/engine/operators/own_kernels.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/worker/engine/kernels/open_fake_kernels.h"
#include "worker/engine/operators/activation.h"

namespace motley::engine {
namespace {

constexpr int64_t kRows = 37, kColumns = 88;  // 407 packs of half types: two blocks, the second not full

class OwnKernelsTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(kernels_.ok()) << kernels_.status(); }
  const KernelLauncher* kernels() const { return kernels_->get(); }
  static at::Tensor Draw(at::IntArrayRef sizes, at::ScalarType type) {
    at::manual_seed(7);
    return (at::randn(sizes) * 2).to(type);
  }
  static bool Taken(const KernelLauncher* kernels, const at::Tensor& tensor) {
    return TakenByKernels(kernels, {tensor}, tensor.size(-1));
  }

  const absl::StatusOr<std::unique_ptr<KernelLauncher>> kernels_ = LoadFakeKernels();
};

TEST_F(OwnKernelsTest, TakeWhatTheyAreMadeFor) {
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf, at::kFloat}) {
    EXPECT_TRUE(Taken(kernels(), at::zeros({3, 16}, type)));
    EXPECT_FALSE(Taken(nullptr, at::zeros({3, 16}, type)));
    EXPECT_FALSE(Taken(kernels(), at::zeros({3, 12}, type))) << "columns";
    EXPECT_FALSE(Taken(kernels(), at::zeros({0, 16}, type))) << "no rows";
    EXPECT_FALSE(Taken(kernels(), at::zeros({16, 16}, type).t())) << "rows with gaps";
    EXPECT_FALSE(Taken(kernels(), at::zeros({3 * 16 + 1}, type).narrow(0, 1, 3 * 16).view({3, 16}))) << "begins between packs";
  }
  EXPECT_FALSE(Taken(kernels(), at::zeros({3, 16}, at::kDouble)));
  EXPECT_FALSE(TakenByKernels(kernels(), {at::zeros({3, 16}, at::kHalf), at::zeros({3, 16}, at::kBFloat16)}, 16));
}

TEST_F(OwnKernelsTest, TakeRowsThatLieAsTheyLikeAtPacks) {
  const auto taken = [&](const at::Tensor& tensor) { return RowsTakenByKernels(kernels(), {tensor}, tensor.size(-1)); };
  const at::Tensor heads = at::zeros({2, 3, 5, 16}, at::kBFloat16);
  EXPECT_TRUE(taken(heads.transpose(1, 2)));
  EXPECT_TRUE(taken(heads.narrow(3, 8, 8)));
  EXPECT_FALSE(Taken(kernels(), heads.transpose(1, 2))) << "only where that is asked";
  EXPECT_FALSE(taken(heads.transpose(2, 3))) << "no rows side by side";
  EXPECT_FALSE(taken(heads.narrow(3, 4, 8))) << "begins between packs";
  EXPECT_FALSE(taken(at::zeros({2, 12}, at::kBFloat16).narrow(1, 0, 8))) << "the second row begins between packs";
}

// By the kernels, and by PyTorch's operators.
using Function = at::Tensor (*)(const at::Tensor& grad, const at::Tensor& input, const KernelLauncher* kernels);
struct GatedCase {
  const char* name;
  Function forward, backward;
  double float_bound, same;  // of half types at least so many have the same bits
};
const GatedCase kGated[] = {
    {"SwiGLU", [](const at::Tensor&, const at::Tensor& input, const KernelLauncher* own) { return SwiGluForward(input, own); },
     SwiGluBackward, 1e-6, 0.99},
    {"GeGLU", [](const at::Tensor&, const at::Tensor& input, const KernelLauncher* own) { return GeGluForward(input, own); },
     GeGluBackward, 2e-4, 0.97},  // PyTorch's own error: 1 + tanh(u) has few digits where it is near 0
};

TEST_F(OwnKernelsTest, GatedActivationsArePyTorchs) {
  for (const GatedCase& gated : kGated) {
    for (const at::ScalarType type : {at::kBFloat16, at::kHalf, at::kFloat}) {
      const at::Tensor input = Draw({kRows, 2 * kColumns}, type), grad = Draw({kRows, kColumns}, type);
      const long before = FakeLaunches();
      const at::Tensor output = gated.forward(grad, input, kernels()), grad_input = gated.backward(grad, input, kernels());
      EXPECT_EQ(FakeLaunches(), before + 2) << gated.name;
      for (const auto& [got, want] : {std::pair{output, gated.forward(grad, input, nullptr)},
                                      std::pair{grad_input, gated.backward(grad, input, nullptr)}}) {
        ASSERT_EQ(got.sizes(), want.sizes());
        ASSERT_EQ(got.scalar_type(), type);
        const double bound = type == at::kFloat ? gated.float_bound : type == at::kHalf ? 2e-3 : 1.6e-2;
        EXPECT_LT(((got - want).abs() / (want.abs() + 0.1)).max().item<double>(), bound) << gated.name;
        if (type != at::kFloat) {
          EXPECT_GT(got.eq(want).to(at::kFloat).mean().item<double>(), gated.same) << gated.name << ": rounded elsewhere";
        }
      }
      EXPECT_TRUE(output.equal(gated.forward(grad, input, kernels()))) << gated.name << " computed again";
    }
  }
}

TEST_F(OwnKernelsTest, SwiGluOfFewRowsAndOfSamples) {
  const at::Tensor input = Draw({2, 3, 16}, at::kFloat);
  EXPECT_TRUE(at::allclose(SwiGluForward(input, kernels()), SwiGluForward(input)));
  EXPECT_EQ(SwiGluForward(input, kernels()).sizes(), at::IntArrayRef({2, 3, 8}));
}

TEST_F(OwnKernelsTest, WhatTheyDoNotTakeIsPyTorchsToTheBit) {
  const long before = FakeLaunches();
  for (const auto& [columns, type] : {std::pair{int64_t{12}, at::kBFloat16}, std::pair{kColumns, at::kDouble}}) {
    const at::Tensor input = Draw({5, 2 * columns}, type), grad = Draw({5, columns}, type);
    for (const GatedCase& gated : kGated) {
      EXPECT_TRUE(gated.forward(grad, input, kernels()).equal(gated.forward(grad, input, nullptr))) << gated.name;
      EXPECT_TRUE(gated.backward(grad, input, kernels()).equal(gated.backward(grad, input, nullptr))) << gated.name;
    }
  }
  EXPECT_EQ(FakeLaunches(), before);
}

}  // namespace
}  // namespace motley::engine
