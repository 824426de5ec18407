// Ranks on cards that have kernels of their own train as ranks on cards without.
#include <memory>

#include "tests/worker/engine/engine_fixture.h"
#include "tests/worker/engine/fake_card.h"
#include "tests/worker/engine/kernels/open_fake_kernels.h"

namespace motley::engine {
namespace {

class OwnKernelsPlansTest : public EngineTest {
 protected:
  // With biases, and heads that kernels turn.
  static ModelShape Model() {
    ModelShape shape = Qwen2();
    shape.head_dim = 16;
    return shape;
  }
  std::vector<StepResult> Losses(const KernelLauncher* kernels, const std::string& recompute = "none",
                                 const ModelShape& model = Model()) {
    std::vector<std::unique_ptr<FakeCard>> cards;
    for (unsigned rank = 0; rank < 2; ++rank) {
      cards.push_back(std::make_unique<FakeCard>(rank + 1));
      cards.back()->set_kernels(kernels);
    }
    const Outcome outcome = Train(Assign(model, {{{3, 2}, 0.7, recompute}, {{3}, 0.3, recompute}}), {}, [&](int rank) {
      EngineOptions options;
      options.backend = cards[rank].get();
      return options;
    });
    for (const auto& end : outcome.ends) EXPECT_TRUE(end.ok()) << end.status();
    return outcome.steps[0];
  }

  const absl::StatusOr<std::unique_ptr<KernelLauncher>> kernels_ = LoadFakeKernels();
};

TEST_F(OwnKernelsPlansTest, TrainAsPyTorchsOperatorsDo) {
  ASSERT_TRUE(kernels_.ok()) << kernels_.status();
  config_.training.dtype = "float32";
  for (const auto& [type, bound] : {std::pair{"float32", 1e-4}, {"bfloat16", 2e-2}, {"float16", 4e-3}}) {
    config_.training.mixed_precision_param = type;
    const long before = FakeLaunches();
    const std::vector<StepResult> with = Losses(kernels_->get());
    // 12 steps, 3 microbatches, 3 layers, 2 kernels forward and 3 backward; evaluations and the rehearsal besides.
    EXPECT_GT(FakeLaunches(), before + 12 * 3 * 3 * 5) << type;
    const long after = FakeLaunches();
    ExpectSameCurve(with, Losses(nullptr), bound);
    EXPECT_EQ(FakeLaunches(), after) << type;
  }
}

TEST_F(OwnKernelsPlansTest, WhatIsComputedAgainHasTheForwardsBits) {
  ASSERT_TRUE(kernels_.ok()) << kernels_.status();
  config_.training.dtype = "float32";
  config_.training.mixed_precision_param = "bfloat16";
  const std::vector<StepResult> kept = Losses(kernels_->get());
  for (const char* again : {"activation", "qkv,rotary"}) ExpectSameCurve(Losses(kernels_->get(), again), kept, 0);
}

// LayerNorm, in the place of RMSNorm.
TEST_F(OwnKernelsPlansTest, TrainGpt2AsPyTorchsOperatorsDo) {
  ASSERT_TRUE(kernels_.ok()) << kernels_.status();
  config_.training.dtype = "float32";
  for (const auto& [type, bound] : {std::pair{"float32", 1e-4}, {"bfloat16", 2e-2}}) {
    config_.training.mixed_precision_param = type;
    const long before = FakeLaunches();
    const std::vector<StepResult> with = Losses(kernels_->get(), "none", Gpt2());
    // 12 steps, 3 microbatches, 3 layers of two norms: one launch forward, two backward.
    EXPECT_GT(FakeLaunches(), before + 12 * 3 * 3 * 2 * 3) << type;
    ExpectSameCurve(with, Losses(nullptr, "none", Gpt2()), bound);
  }
}

TEST_F(OwnKernelsPlansTest, NormsThatAreComputedAgainHaveTheForwardsBits) {
  ASSERT_TRUE(kernels_.ok()) << kernels_.status();
  config_.training.dtype = "float32";
  config_.training.mixed_precision_param = "bfloat16";
  for (const ModelShape& model : {Llama(), Gpt2()}) {
    const std::vector<StepResult> kept = Losses(kernels_->get(), "none", model);
    for (const char* recomputed : {"norm1,norm2", "attn_out,residual1", "attn_out,residual1,norm2"}) {
      ExpectSameCurve(Losses(kernels_->get(), recomputed, model), kept, 0);
    }
  }
}

TEST_F(OwnKernelsPlansTest, Float64StaysPyTorchs) {
  ASSERT_TRUE(kernels_.ok()) << kernels_.status();
  const long before = FakeLaunches();
  ExpectSameCurve(Losses(kernels_->get()), Losses(nullptr), 0);
  EXPECT_EQ(FakeLaunches(), before);
}

}  // namespace
}  // namespace motley::engine
