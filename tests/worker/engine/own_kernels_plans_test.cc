// Ranks on cards that have kernels of their own train as ranks on cards without.
#include <ATen/record_function.h>

#include <atomic>
#include <memory>

#include "tests/worker/engine/engine_fixture.h"
#include "tests/worker/engine/fake_card.h"
#include "tests/worker/engine/kernels/open_fake_kernels.h"

namespace motley::engine {
namespace {

// Copies of flat float32 arrays in another type, as gathers make them, while it lives.
class CountedCasts {
 public:
  CountedCasts() {
    casts_ = 0;
    handle_ = at::addGlobalCallback(
        at::RecordFunctionCallback(&CountedCasts::Note).scopes({at::RecordScope::FUNCTION}).needsInputs(true));
  }
  ~CountedCasts() { at::removeCallback(handle_); }
  int casts() const { return casts_; }

 private:
  static std::unique_ptr<at::ObserverContext> Note(const at::RecordFunction& function) {
    if (std::string_view(function.name()) != "aten::copy_") return nullptr;
    const at::Tensor to = function.inputs()[0].toTensor(), from = function.inputs()[1].toTensor();
    if (to.dim() == 1 && from.scalar_type() == at::kFloat && to.scalar_type() != at::kFloat) ++casts_;
    return nullptr;
  }
  static inline std::atomic<int> casts_ = 0;
  at::CallbackHandle handle_ = at::INVALID_CALLBACK_HANDLE;
};

class OwnKernelsPlansTest : public EngineTest {
 protected:
  static constexpr int kSteps = 4;  // an emulated card takes its time

  void SetUp() override {
    EngineTest::SetUp();
    config_.training.steps = kSteps;
    config_.training.dtype = "float32";
  }
  // With biases, and heads that kernels turn.
  static ModelShape Model() {
    ModelShape shape = Qwen2();
    shape.head_dim = 16;
    return shape;
  }
  std::vector<StepResult> Losses(const KernelLauncher* kernels, const std::string& recompute = "none",
                                 const ModelShape& model = Model()) {
    return Losses(kernels, Assign(model, {{{3, 2}, 0.7, recompute}, {{3}, 0.3, recompute}}));
  }
  std::vector<StepResult> Losses(const KernelLauncher* kernels, const std::vector<RankAssignment>& assignments) {
    std::vector<std::unique_ptr<FakeCard>> cards;
    for (unsigned rank = 0; rank < 2; ++rank) {
      cards.push_back(std::make_unique<FakeCard>(rank + 1));
      cards.back()->set_kernels(kernels);
    }
    const Outcome outcome = Train(assignments, {}, [&](int rank) {
      EngineOptions options;
      options.backend = cards[rank].get();
      return options;
    });
    for (const auto& end : outcome.ends) EXPECT_TRUE(end.ok()) << end.status();
    return outcome.steps[0];
  }

  // As the others, with the parameters in homes: gathered once a step.
  std::vector<RankAssignment> WithHomes() {
    planner::Plan plan;
    plan.strategy = "hand";
    plan.epoch = Epoch(1);
    plan.global_batch = config_.training.global_batch_size;
    plan.seq_len = config_.training.seq_len;
    plan.dtype = PrecisionOf(config_.training)->compute;
    planner::StagePlan stage;
    stage.ministages = {{0, Llama().num_layers - 1}};
    stage.zero_stage = 2;
    for (const auto& [name, share, microbatches] :
         {std::tuple{"n0/gpu0", 0.7, std::vector<int64_t>{3, 2}}, {"n1/gpu0", 0.3, {3}}}) {
      planner::RankPlan rank;
      rank.device = DeviceId(name);
      rank.shard_ratio = share;
      stage.units.push_back({{rank}, microbatches});
    }
    plan.pipelines = {{{stage}}};
    std::vector<RankAssignment> assignments = AssignPlan(Llama(), plan, FourSamples(plan));
    EXPECT_GE(assignments[0].program.parameter_buffers[0].home_of, 0);
    return assignments;
  }

  const absl::StatusOr<std::unique_ptr<KernelLauncher>> kernels_ = LoadFakeKernels();
};

TEST_F(OwnKernelsPlansTest, TrainAsPyTorchsOperatorsDo) {
  ASSERT_TRUE(kernels_.ok()) << kernels_.status();
  for (const auto& [type, bound] : {std::pair{"float32", 1e-4}, {"bfloat16", 2e-2}, {"float16", 4e-3}}) {
    config_.training.mixed_precision_param = type;
    const long before = FakeLaunches();
    const std::vector<StepResult> with = Losses(kernels_->get());
    // By step 3 microbatches, 3 layers, 2 kernels forward and 3 backward; evaluations and the rehearsal besides.
    EXPECT_GT(FakeLaunches(), before + kSteps * 3 * 3 * 5) << type;
    const long after = FakeLaunches();
    ExpectSameCurve(with, Losses(nullptr), bound);
    EXPECT_EQ(FakeLaunches(), after) << type;
  }
}

TEST_F(OwnKernelsPlansTest, WhatIsComputedAgainHasTheForwardsBits) {
  ASSERT_TRUE(kernels_.ok()) << kernels_.status();
  config_.training.steps = 2;
  config_.training.mixed_precision_param = "bfloat16";
  const std::vector<StepResult> kept = Losses(kernels_->get());
  for (const char* again : {"activation", "qkv,rotary"}) ExpectSameCurve(Losses(kernels_->get(), again), kept, 0);
}

// LayerNorm, in the place of RMSNorm.
TEST_F(OwnKernelsPlansTest, TrainGpt2AsPyTorchsOperatorsDo) {
  ASSERT_TRUE(kernels_.ok()) << kernels_.status();
  config_.training.mixed_precision_param = "bfloat16";
  const long before = FakeLaunches();
  const std::vector<StepResult> with = Losses(kernels_->get(), "none", Gpt2());
  // By step 3 microbatches, 3 layers: of two norms one launch forward and two backward, and the last residual.
  EXPECT_GT(FakeLaunches(), before + kSteps * 3 * 3 * (2 * 3 + 1));
  ExpectSameCurve(with, Losses(nullptr, "none", Gpt2()), 2e-2);
}

TEST_F(OwnKernelsPlansTest, NormsThatAreComputedAgainHaveTheForwardsBits) {
  ASSERT_TRUE(kernels_.ok()) << kernels_.status();
  config_.training.steps = 2;
  config_.training.mixed_precision_param = "bfloat16";
  // Each without the other, and both: a forward runs the residual and the norm behind it as one.
  const std::vector<StepResult> kept = Losses(kernels_->get(), "none", Gpt2());
  for (const char* recomputed : {"norm1,norm2", "attn_out,residual1", "attn_out,residual1,norm2"}) {
    ExpectSameCurve(Losses(kernels_->get(), recomputed, Gpt2()), kept, 0);
  }
}

// An evaluation may fill a home: the gather behind it casts again.
TEST_F(OwnKernelsPlansTest, AHomeIsCastWhereItIsStepped) {
  ASSERT_TRUE(kernels_.ok()) << kernels_.status();
  constexpr int kMoreSteps = 12;  // than evaluations
  config_.training.steps = kMoreSteps;
  for (const char* const type : {"bfloat16", "float16"}) {
    config_.training.mixed_precision_param = type;
    const auto run = [&](const KernelLauncher* kernels) {
      const CountedCasts counted;
      std::vector<StepResult> losses = Losses(kernels, WithHomes());
      return std::pair{losses, counted.casts()};
    };
    const auto [got, casts] = run(kernels_->get());
    const auto [want, casts_without] = run(nullptr);
    ExpectSameCurve(got, want, type == std::string("float16") ? 4e-3 : 2e-2);
    EXPECT_GE(casts_without, kMoreSteps * 5 * 2) << "5 units, 2 ranks";
    EXPECT_LE(casts, casts_without / 2);
  }
}

TEST_F(OwnKernelsPlansTest, Float64StaysPyTorchs) {
  config_.training.dtype = "float64";
  ASSERT_TRUE(kernels_.ok()) << kernels_.status();
  const long before = FakeLaunches();
  ExpectSameCurve(Losses(kernels_->get()), Losses(nullptr), 0);
  EXPECT_EQ(FakeLaunches(), before);
}

}  // namespace
}  // namespace motley::engine
