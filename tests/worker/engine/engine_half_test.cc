// Mixed precision and the loss scale of whole runs.
#include <algorithm>
#include <cmath>
#include <map>

#include "common/checkpoint/checkpoint.h"
#include "tests/worker/engine/engine_fixture.h"
#include "tests/worker/engine/equivalence/training_run.h"

namespace motley::engine {
namespace {

class HalfTest : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    config_.training.dtype = "float32";
    config_.training.mixed_precision_param = "float16";
    config_.training.steps = 6;
    config_.checkpoint.folder = (folder_ / "checkpoints").string();
    config_.checkpoint.interval = 1;
    config_.checkpoint.keep_latest_k = 0;
  }
  std::vector<RankAssignment> TwoRanks() const { return Assign(Llama(), {{{3, 2}, 0.7}, {{3}, 0.3}}); }
  // Rank 1 overflows in these steps, which count from 0.
  Outcome TrainWithOverflow(const std::vector<RankAssignment>& assignments, const std::function<bool(int64_t)>& when) {
    return Train(assignments, {}, [&](int rank) {
      EngineOptions options;
      if (rank == 1) options.overflows = when;
      return options;
    });
  }
};

TEST_F(HalfTest, AnOverflowOnOneRankSkipsTheStepOnAllAndHalvesTheScale) {
  const Outcome outcome = TrainWithOverflow(TwoRanks(), [](int64_t step) { return step == 2; });
  for (const auto& end : outcome.ends) ASSERT_TRUE(end.ok()) << end.status();
  for (const std::vector<StepResult>& of_rank : outcome.steps) {
    ASSERT_EQ(of_rank.size(), 6u);
    for (const StepResult& step : of_rank) {
      EXPECT_EQ(step.skipped, step.step == 3) << step.step;
      EXPECT_EQ(step.loss_scale, step.step <= 3 ? 65536 : 32768) << step.step;
      EXPECT_TRUE(std::isfinite(step.loss)) << step.step;
      EXPECT_EQ(std::isfinite(step.grad_norm), !step.skipped) << "as it came: " << step.step;
    }
  }
  const TrainingState before = *ReadState(outcome.checkpoints.at(2)), after = *ReadState(outcome.checkpoints.at(3));
  EXPECT_EQ(before, after);
  EXPECT_NE(after, *ReadState(outcome.checkpoints.at(4)));
  const CheckpointManifest manifest = *ReadManifest(outcome.checkpoints.at(4));
  EXPECT_EQ(manifest.skipped_steps, 1);
  EXPECT_EQ(manifest.loss_scale, 32768);
  EXPECT_EQ(manifest.steps_at_loss_scale, 1);
}

// The optimizer's correction counts updates, not steps.
TEST_F(HalfTest, ASkippedStepIsNoUpdate) {
  config_.lr_scheduler = {.warmup_steps = 0, .decay_type = "constant"};
  config_.optimizer.weight_decay = 0;
  const Outcome outcome = TrainWithOverflow(TwoRanks(), [](int64_t step) { return step == 0; });
  ASSERT_TRUE(outcome.ends[0].ok()) << outcome.ends[0].status();
  const TrainingState before = *ReadState(outcome.checkpoints.at(1)), after = *ReadState(outcome.checkpoints.at(2));
  double most = 0;
  for (size_t u = 0; u < before.size(); ++u) {
    for (size_t i = 0; i < before[u][0].size(); ++i) most = std::max(most, std::abs(after[u][0][i] - before[u][0][i]));
  }
  // The first update moves a weight by lr; counted as the second, with moments that were empty, by 0.73 lr.
  EXPECT_NEAR(most, config_.optimizer.lr, 0.01 * config_.optimizer.lr);
}

TEST_F(HalfTest, AJobThatOverflowsAtScaleOneFails) {
  config_.training.steps = 40;
  const Outcome outcome = TrainWithOverflow(TwoRanks(), [](int64_t) { return true; });
  for (const auto& end : outcome.ends) {
    EXPECT_EQ(end.status().code(), absl::StatusCode::kAborted);
    EXPECT_NE(std::string(end.status().message()).find("even with a loss scale of 1: set training.mixed_precision_param"),
              std::string::npos)
        << end.status();
    EXPECT_NE(std::string(end.status().message()).find("on n1/gpu0"), std::string::npos) << end.status();
  }
  // 16 halvings, and ten in a row at the least scale.
  EXPECT_EQ(outcome.steps[0].size(), 26u);
}

TEST_F(HalfTest, Bfloat16FailsAtOnce) {
  config_.training.mixed_precision_param = "bfloat16";
  const Outcome outcome = TrainWithOverflow(TwoRanks(), [](int64_t step) { return step == 2; });
  for (const auto& end : outcome.ends) EXPECT_EQ(end.status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(outcome.steps[0].size(), 2u);
}

TEST_F(HalfTest, TheScaleIsRestored) {
  const Outcome whole = TrainWithOverflow(TwoRanks(), [](int64_t step) { return step == 1; });
  ASSERT_TRUE(whole.ends[0].ok()) << whole.ends[0].status();
  std::vector<RankAssignment> ranks = TwoRanks();
  for (RankAssignment& rank : ranks) {
    rank.start_step = 3;
    rank.epoch = Epoch(2);
    rank.resume_from = whole.checkpoints.at(3);
  }
  const Outcome again = TrainOk(ranks);
  ASSERT_EQ(again.steps[0].size(), 3u);
  for (const StepResult& step : again.steps[0]) EXPECT_EQ(step.loss_scale, 32768);
  EXPECT_EQ(again.steps[0].back().loss, whole.steps[0].back().loss);
  EXPECT_EQ(ReadManifest(again.checkpoints.at(6))->skipped_steps, 1);
}

// Adam hardly sees a factor of the gradient, so no loss shows it: the moments do, when the scale changes at the latest.
TEST_F(HalfTest, MomentsAreOfTheGradientWithoutItsScale) {
  config_.training.steps = 1;
  std::map<std::string, std::vector<double>> norms;
  for (const std::string type : {"float32", "float16"}) {
    config_.training.mixed_precision_param = type;
    const TrainingState state = *ReadState(TrainOk(TwoRanks()).checkpoints.at(1));
    for (const size_t moment : {1, 2}) {
      double squares = 0;
      for (const auto& unit : state) {
        for (const double value : unit[moment]) squares += value * value;
      }
      norms[type].push_back(std::sqrt(squares));
    }
    std::filesystem::remove_all(config_.checkpoint.folder);
  }
  for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(norms["float16"][i] / norms["float32"][i], 1, 0.05);
}

// Masters are float32 whatever computed: the state goes over as it is, and the next step is one of the new type.
TEST_F(HalfTest, ACheckpointGoesOnInAnotherType) {
  for (const std::string from : {"float16", "bfloat16", "float32"}) {
    config_.training.mixed_precision_param = from;
    const Outcome before = TrainOk(TwoRanks());
    const TrainingState state = *ReadState(before.checkpoints.at(3));
    for (const std::string to : {"float16", "bfloat16", "float32"}) {
      SCOPED_TRACE(from + " to " + to);
      JobConfig other = config_;
      other.training.mixed_precision_param = to;
      other.optimizer.lr = 1e-300;  // a step that changes no weight
      other.training.steps = 4;
      other.checkpoint.folder = (folder_ / ("to-" + to)).string();
      std::vector<RankAssignment> ranks = TwoRanks();
      for (RankAssignment& rank : ranks) {
        rank.config = other;
        rank.epoch = Epoch(2);
        rank.start_step = 3;
        rank.resume_from = before.checkpoints.at(3);
      }
      const Outcome after = TrainOk(ranks);
      const TrainingState kept = *ReadState(after.checkpoints.at(4));
      for (size_t u = 0; u < state.size(); ++u) EXPECT_EQ(kept[u][0], state[u][0]) << "unit " << u;
      // The same weights, the same samples: the loss of the step that came next, to the rounding of the two types.
      EXPECT_NEAR(after.steps[0].front().loss, before.steps[0][3].loss, 1e-2);
      if (to == from) {
        EXPECT_EQ(after.steps[0].front().loss, before.steps[0][3].loss);
      } else {
        EXPECT_NE(after.steps[0].front().loss, before.steps[0][3].loss);
      }
    }
    std::filesystem::remove_all(config_.checkpoint.folder);
  }
}

}  // namespace
}  // namespace motley::engine
