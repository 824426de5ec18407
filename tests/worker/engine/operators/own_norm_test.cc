// Norms by kernels of our own, which a fake driver runs over host memory, beside PyTorch's.
#include "worker/engine/operators/own_norm.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/worker/engine/kernels/open_fake_kernels.h"
#include "worker/engine/operators/finite_check.h"
#include "worker/engine/operators/residual.h"

namespace motley::engine {
namespace {

class OwnNormTest : public testing::Test {
 protected:
  static constexpr double kEps = 1e-5;
  static constexpr NormKind kKinds[] = {NormKind::kLayerNorm, NormKind::kRmsNorm, NormKind::kRmsNormPlusOne};
  static constexpr at::ScalarType kTypes[] = {at::kBFloat16, at::kHalf, at::kFloat};

  void SetUp() override { ASSERT_TRUE(kernels_.ok()) << kernels_.status(); }
  const KernelLauncher* kernels() const { return kernels_->get(); }

  struct Made {
    at::Tensor output;
    NormStats stats;
    NormGradients gradients;
  };
  struct Given {
    Given(int64_t rows, int64_t columns, at::ScalarType type) {
      at::manual_seed(7);
      for (at::Tensor* tensor : {&input, &grad, &carried}) *tensor = (at::randn({rows, columns}) * 2).to(type);
      for (at::Tensor* tensor : {&weight, &bias}) *tensor = at::randn({columns}).to(type);
    }
    at::Tensor input, grad, carried, weight, bias;
  };
  static Given Widened(Given given) {
    for (at::Tensor* tensor : {&given.input, &given.grad, &given.weight, &given.bias}) *tensor = tensor->to(at::kFloat);
    return given;
  }
  static Made Run(NormKind kind, const Given& given, const KernelLauncher* kernels) {
    const at::Tensor bias = kind == NormKind::kLayerNorm ? given.bias : at::Tensor();
    Made made;
    made.output = NormForward(kind, given.input, given.weight, bias, kEps, made.stats, kernels);
    made.gradients = NormBackward(kind, given.grad, given.input, given.weight, bias, made.stats, kernels);
    return made;
  }
  // Relative to 1 and more: sums of many terms have no size of their own.
  static double Apart(const at::Tensor& got, const at::Tensor& want) {
    EXPECT_EQ(got.sizes(), want.sizes());
    EXPECT_EQ(got.scalar_type(), want.scalar_type());
    return ((got - want).abs() / (want.abs() + 1)).max().item<double>();
  }
  static double SameBits(const at::Tensor& got, const at::Tensor& want) {
    return got.eq(want).to(at::kFloat).mean().item<double>();
  }

  const absl::StatusOr<std::unique_ptr<KernelLauncher>> kernels_ = LoadFakeKernels();
};

TEST_F(OwnNormTest, IsPyTorchs) {
  for (const at::ScalarType type : kTypes) {
    for (const NormKind kind : kKinds) {
      const Given given(37, 88, type);
      const long before = FakeLaunches();
      const Made got = Run(kind, given, kernels());
      EXPECT_EQ(FakeLaunches(), before + 3);
      const Made want = Run(kind, given, nullptr);
      EXPECT_EQ(FakeLaunches(), before + 3);
      const double bound = type == at::kFloat ? 2e-6 : type == at::kHalf ? 2e-3 : 1.6e-2;
      EXPECT_LT(Apart(got.output, want.output), bound);
      EXPECT_LT(Apart(got.gradients.input, want.gradients.input), bound);
      if (type != at::kFloat) {
        EXPECT_GT(SameBits(got.output, want.output), 0.99) << "rounded elsewhere";
        EXPECT_GT(SameBits(got.gradients.input, want.gradients.input), 0.98) << "rounded elsewhere";
      }
      // Numbers of rows and columns are float32. ATen's for hosts sums columns of half types in these.
      const Made exact = Run(kind, Widened(given), nullptr);
      EXPECT_LT(Apart(got.stats.rstd, want.stats.rstd), 2e-6);
      EXPECT_LT(Apart(got.gradients.weight, exact.gradients.weight), 1e-5);
      ASSERT_EQ(got.stats.mean.defined(), kind == NormKind::kLayerNorm);
      ASSERT_EQ(got.gradients.bias.defined(), kind == NormKind::kLayerNorm);
      if (kind != NormKind::kLayerNorm) continue;
      EXPECT_LT(Apart(got.stats.mean, want.stats.mean), 2e-6);
      EXPECT_LT(Apart(got.gradients.bias, exact.gradients.bias), 1e-5);
    }
  }
}

TEST_F(OwnNormTest, OfManyRowsAndOfOne) {
  for (const auto& [rows, columns] : {std::pair{1, 8}, {1, 776}, {300, 24}, {20, 2056}}) {
    for (const NormKind kind : kKinds) {
      const Given given(rows, columns, at::kFloat);
      const Made got = Run(kind, given, kernels()), want = Run(kind, given, nullptr);
      EXPECT_LT(Apart(got.output, want.output), 5e-6) << rows << " " << columns;
      EXPECT_LT(Apart(got.gradients.input, want.gradients.input), 5e-6) << rows << " " << columns;
      EXPECT_LT(Apart(got.gradients.weight, want.gradients.weight), 2e-5) << rows << " " << columns;
    }
  }
}

TEST_F(OwnNormTest, TwoRunsHaveTheSameBits) {
  const Given given(70, 264, at::kBFloat16);
  const Made one = Run(NormKind::kLayerNorm, given, kernels()), other = Run(NormKind::kLayerNorm, given, kernels());
  EXPECT_TRUE(one.output.equal(other.output) && one.gradients.input.equal(other.gradients.input));
  EXPECT_TRUE(one.gradients.weight.equal(other.gradients.weight) && one.gradients.bias.equal(other.gradients.bias));
}

// The residual before a norm, and the gradient that is carried past it: within the kernel the bits of an addition of its own.
TEST_F(OwnNormTest, AddWhatIsCarried) {
  for (const at::ScalarType type : kTypes) {
    for (const NormKind kind : kKinds) {
      const at::Tensor none;
      const Given given(9, 264, type);
      const at::Tensor bias = kind == NormKind::kLayerNorm ? given.bias : none;
      const at::Tensor sum = given.input.clone(), sum_alone = given.input.add(given.carried);
      NormStats stats, stats_alone;
      const long before = FakeLaunches();
      const at::Tensor made = NormForward(kind, sum, given.weight, bias, kEps, stats, kernels(), given.carried);
      EXPECT_EQ(FakeLaunches(), before + 1);
      EXPECT_TRUE(sum.equal(sum_alone));
      EXPECT_TRUE(made.equal(NormForward(kind, sum_alone, given.weight, bias, kEps, stats_alone, kernels())));
      EXPECT_TRUE(stats.rstd.equal(stats_alone.rstd));
      const at::Tensor past = given.carried.clone();
      const NormGradients with = NormBackward(kind, given.grad, sum, given.weight, bias, stats, kernels(), past),
                          alone = NormBackward(kind, given.grad, sum, given.weight, bias, stats, kernels());
      EXPECT_TRUE(with.input.equal(alone.input.add(given.carried)));
      EXPECT_TRUE(with.weight.equal(alone.weight));
      EXPECT_TRUE(past.equal(given.carried)) << "others may hold it";
    }
  }
}

// By PyTorch's operators, where the kernels do not take what is carried or anything of it.
TEST_F(OwnNormTest, WhatIsCarriedIsAddedWithoutKernelsToo) {
  for (const NormKind kind : kKinds) {
    const Given given(9, 24, at::kBFloat16);
    const at::Tensor bias = kind == NormKind::kLayerNorm ? given.bias : at::Tensor();
    const at::Tensor gaps = given.carried.t().contiguous().t();
    for (const KernelLauncher* kernels : {static_cast<const KernelLauncher*>(nullptr), this->kernels()}) {
      const at::Tensor sum = given.input.clone(), sum_alone = given.input.add(given.carried);
      NormStats stats, stats_alone;
      const at::Tensor made = NormForward(kind, sum, given.weight, bias, kEps, stats, kernels, gaps);
      EXPECT_TRUE(sum.equal(sum_alone));
      EXPECT_TRUE(made.equal(NormForward(kind, sum_alone, given.weight, bias, kEps, stats_alone)));
      const NormGradients with = NormBackward(kind, given.grad, sum, given.weight, bias, stats, kernels, gaps),
                          alone = NormBackward(kind, given.grad, sum, given.weight, bias, stats_alone);
      EXPECT_TRUE(with.input.equal(alone.input.add(given.carried)));
    }
  }
}

// A check's number, marked in passing.
TEST_F(OwnNormTest, MarkWhatIsNotFinite) {
  for (const bool bad : {false, true}) {
    Given given(9, 264, at::kBFloat16);
    if (bad) given.carried.select(0, 5).select(0, 200).fill_(HUGE_VAL);
    const FiniteCheck check(3, 2, at::TensorOptions(at::kFloat));
    NormStats stats;
    FiniteMark backward = check.MarkOf(2, 0), forward = check.MarkOf(1, 1);
    NormForward(NormKind::kRmsNorm, given.input, given.weight, at::Tensor(), kEps, stats, kernels());
    NormBackward(NormKind::kRmsNorm, given.grad, given.input, given.weight, at::Tensor(), stats, kernels(), given.carried,
                 &backward);
    EXPECT_TRUE(backward.taken());
    EXPECT_EQ(check.First(), bad ? 2 : 3);
    const at::Tensor sum = given.input.clone();
    const long before = FakeLaunches();
    AddCarried(sum, given.carried, kernels(), &forward);
    EXPECT_EQ(FakeLaunches(), before + 1);
    EXPECT_TRUE(forward.taken());
    EXPECT_TRUE(sum.equal(given.input.add(given.carried)));
    EXPECT_EQ(check.First(), bad ? 1 : 3);
  }
}

// Where nobody asks, or no kernel takes it: who runs the pass notes what was made.
TEST_F(OwnNormTest, LeaveTheMarkToOthers) {
  for (const at::ScalarType type : {at::kBFloat16, at::kDouble}) {
    const Given given(9, 24, type);
    const FiniteCheck check(1, 1, at::TensorOptions(type == at::kDouble ? at::kDouble : at::kFloat));
    FiniteMark mark = check.MarkOf(0, 0), nobody;
    const at::Tensor sum = given.input.clone();
    const long before = FakeLaunches();
    AddCarried(sum, given.carried, type == at::kDouble ? kernels() : nullptr, &mark);
    AddCarried(sum, given.carried, kernels(), &nobody);
    AddCarried(sum, given.carried, kernels(), nullptr);
    EXPECT_EQ(FakeLaunches(), before);
    EXPECT_FALSE(mark.taken() || nobody.taken());
    EXPECT_TRUE(sum.equal(given.input.add(given.carried).add_(given.carried).add_(given.carried)));
  }
}

// Either half may be a kernel's and the other PyTorch's: what stays between them is the same.
TEST_F(OwnNormTest, TheHalvesMayBeOfDifferentSides) {
  for (const NormKind kind : kKinds) {
    const Given given(9, 48, at::kBFloat16);
    const Made own = Run(kind, given, kernels()), other = Run(kind, given, nullptr);
    for (const auto& [kernels, stats] : {std::pair{this->kernels(), other.stats}, {nullptr, own.stats}}) {
      const at::Tensor bias = kind == NormKind::kLayerNorm ? given.bias : at::Tensor();
      const NormGradients mixed = NormBackward(kind, given.grad, given.input, given.weight, bias, stats, kernels);
      EXPECT_LT(Apart(mixed.input, own.gradients.input), 1.6e-2);
    }
  }
}

TEST_F(OwnNormTest, WhatTheyDoNotTakeIsPyTorchsToTheBit) {
  const long before = FakeLaunches();
  for (const NormKind kind : kKinds) {
    Given odd(5, 12, at::kBFloat16), wide(5, 16, at::kDouble), between(5, 16, at::kBFloat16), mixed(5, 16, at::kBFloat16);
    at::Tensor room = at::zeros({17}, at::kBFloat16);
    between.weight = room.narrow(0, 1, 16).copy_(between.weight);  // begins at 2 bytes
    mixed.weight = mixed.weight.to(at::kFloat);
    mixed.bias = mixed.bias.to(at::kFloat);
    for (const Given* given : {&odd, &wide, &between, &mixed}) {
      const Made got = Run(kind, *given, kernels()), want = Run(kind, *given, nullptr);
      EXPECT_TRUE(got.output.equal(want.output) && got.gradients.input.equal(want.gradients.input));
      EXPECT_TRUE(got.gradients.weight.equal(want.gradients.weight));
    }
  }
  EXPECT_EQ(FakeLaunches(), before);
}

}  // namespace
}  // namespace motley::engine
