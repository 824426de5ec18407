// A step of AdamW by one kernel, which a fake driver runs over host memory, beside PyTorch's operators.
#include "worker/engine/operators/own_adamw.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/worker/engine/kernels/open_fake_kernels.h"
#include "worker/engine/model/optimizer.h"

namespace motley::engine {
namespace {

class OwnAdamWTest : public testing::Test {
 protected:
  static constexpr int64_t kElements = 5003;
  static constexpr double kClip = 0.37;
  static inline const OptimizerSection kOptions{.lr = 3e-3, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1};

  void SetUp() override {
    ASSERT_TRUE(kernels_.ok()) << kernels_.status();
    at::manual_seed(7);
  }
  const KernelLauncher* kernels() const { return kernels_->get(); }
  // As an uneven share's: each array begins somewhere in another one.
  static AdamWRange Draw(at::ScalarType type, at::ScalarType cast, bool zeroes) {
    const auto drawn = [type](int64_t begin) { return at::randn({begin + kElements + 5}).to(type).narrow(0, begin, kElements); };
    return {.gradient = drawn(3),
            .parameter = drawn(0),
            .exp_avg = drawn(0) * 0,
            .exp_avg_sq = drawn(2).zero_(),
            .cast = cast == at::kByte ? at::Tensor() : at::zeros({kElements + 1}, cast).narrow(0, 1, kElements),
            .zeroes_gradient = zeroes};
  }
  static AdamWRange Copy(const AdamWRange& range) {
    AdamWRange copy = range;
    for (at::Tensor* const tensor : {&copy.gradient, &copy.parameter, &copy.exp_avg, &copy.exp_avg_sq}) *tensor = tensor->clone();
    if (copy.cast.defined()) copy.cast = copy.cast.clone();
    return copy;
  }

  const absl::StatusOr<std::unique_ptr<KernelLauncher>> kernels_ = LoadFakeKernels();
};

// Over many steps, in units of the last place of what a number was made of.
TEST_F(OwnAdamWTest, IsPyTorchsWithinAFewRoundings) {
  AdamWRange own = Draw(at::kFloat, at::kBFloat16, true), other = Copy(own);
  const at::Tensor begun = own.parameter.clone();
  constexpr double kUlp = 6e-8;
  for (int64_t step = 1; step <= 20; ++step) {
    own.gradient.copy_(at::randn({kElements}));
    other.gradient.copy_(own.gradient);
    const long before = FakeLaunches();
    AdamWStep(kOptions, kOptions.lr, step, kClip, own, kernels());
    EXPECT_EQ(FakeLaunches(), before + 1);
    AdamWStep(kOptions, kOptions.lr, step, kClip, other);
    EXPECT_EQ(FakeLaunches(), before + 1);
    EXPECT_TRUE(own.gradient.eq(0).all().item<bool>() && other.gradient.eq(0).all().item<bool>());
    EXPECT_TRUE(own.cast.equal(own.parameter.to(at::kBFloat16)) && other.cast.equal(other.parameter.to(at::kBFloat16)));
  }
  const auto apart = [](const at::Tensor& a, const at::Tensor& b) { return (a - b).abs(); };
  EXPECT_LE((apart(own.exp_avg, other.exp_avg)).max().item<double>(), 20 * kUlp * kClip);
  EXPECT_LE((apart(own.exp_avg_sq, other.exp_avg_sq) / other.exp_avg_sq).max().item<double>(), 10 * kUlp);
  const at::Tensor size = begun.abs() + 20 * kOptions.lr;
  EXPECT_LE((apart(own.parameter, other.parameter) / size).max().item<double>(), 20 * kUlp);
  EXPECT_GT((own.parameter - begun).abs().mean().item<double>(), kOptions.lr) << "it has learnt";
}

TEST_F(OwnAdamWTest, TheGradientStaysWhereItIsNoShard) {
  AdamWRange own = Draw(at::kFloat, at::kByte, false);
  const at::Tensor before = own.gradient.clone();
  AdamWStep(kOptions, kOptions.lr, 1, kClip, own, kernels());
  EXPECT_TRUE(own.gradient.equal(before));
}

TEST_F(OwnAdamWTest, WhatIsTaken) {
  for (const at::ScalarType cast : {at::kByte, at::kBFloat16, at::kHalf, at::kFloat}) {
    EXPECT_TRUE(AdamWTakenByKernels(kernels(), Draw(at::kFloat, cast, false)));
    EXPECT_FALSE(AdamWTakenByKernels(nullptr, Draw(at::kFloat, cast, false)));
    EXPECT_FALSE(AdamWTakenByKernels(kernels(), Draw(at::kDouble, cast, false)));
  }
  const at::Tensor none = at::empty({0});
  EXPECT_FALSE(AdamWTakenByKernels(kernels(), {none, none, none, none}));
  const at::Tensor gaps = at::zeros({8}).slice(0, 0, 8, 2), all = at::zeros({4});
  EXPECT_FALSE(AdamWTakenByKernels(kernels(), {gaps, all, all, all}));
}

TEST_F(OwnAdamWTest, Float64IsPyTorchsToTheBit) {
  AdamWRange own = Draw(at::kDouble, at::kByte, true), other = Copy(own);
  const long before = FakeLaunches();
  AdamWStep(kOptions, kOptions.lr, 2, kClip, own, kernels());
  AdamWStep(kOptions, kOptions.lr, 2, kClip, other);
  EXPECT_TRUE(own.parameter.equal(other.parameter) && own.exp_avg_sq.equal(other.exp_avg_sq));
  EXPECT_TRUE(own.gradient.eq(0).all().item<bool>());
  EXPECT_EQ(FakeLaunches(), before);
}

}  // namespace
}  // namespace motley::engine
