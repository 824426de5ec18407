#include "tests/worker/engine/equivalence/training_run.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>

#include "tests/worker/engine/equivalence/equivalence.h"
#include "tests/worker/engine/equivalence/plan_assignments.h"
#include "tests/worker/engine/fake_host.h"
#include "worker/engine/engine.h"

namespace motley::engine {
namespace {

TEST(TrainingRunTest, AQuarterOfTheInstructionsIsDelayed) {
  int delayed = 0;
  absl::Duration longest;
  for (int rank = 0; rank < 8; ++rank) {
    for (int i = 0; i < 1000; ++i) {
      const absl::Duration delay = DelayOf(5, rank, i);
      EXPECT_EQ(delay, DelayOf(5, rank, i));
      delayed += delay > absl::ZeroDuration();
      longest = std::max(longest, delay);
    }
  }
  EXPECT_NEAR(delayed, 2000, 200);
  EXPECT_LT(longest, absl::Milliseconds(2));
  EXPECT_GT(longest, absl::Milliseconds(1.9));
}

class TrainingRunFolderTest : public testing::Test {
 protected:
  void SetUp() override { WriteTinyText(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::vector<RankAssignment> OneDevice() const {
    const TinyJob job = MakeTinyJob(ModelFamily::kGpt2, {3, 8}, DType::kFloat64, folder_);
    const planner::Plan plan = OneDevicePlan(job);
    return AssignmentsOf(job.model, job.config, plan, FourSamples(plan)).value();
  }
  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("training_run_test-" + std::to_string(getpid()));
};

TEST_F(TrainingRunFolderTest, EveryInstructionCanBeDelayed) {
  const RankAssignment assignment = OneDevice()[0];
  MakeCheckpointFolder(assignment.config);
  FakeKv kv;
  FakeHost host(kv);
  std::atomic<int64_t> begun = 0;
  ASSERT_TRUE(CreateEngine(host, {.before_instruction = [&](int64_t) { ++begun; }})->Run(assignment).ok());
  // Validations after steps 3 and 5.
  EXPECT_EQ(begun, static_cast<int64_t>(kTinySteps * assignment.program.instructions.size() +
                                        2 * assignment.evaluation.instructions.size()));
}

TEST_F(TrainingRunFolderTest, KeepsTheStateOfEveryStepAndLeavesNoFiles) {
  const std::vector<RankAssignment> assignments = OneDevice();
  const absl::StatusOr<TrainingRun> run = TrainOnThreads(assignments);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->steps.size(), static_cast<size_t>(kTinySteps));
  EXPECT_EQ(run->states.size(), static_cast<size_t>(kTinySteps));
  EXPECT_NE(run->states.at(1), run->states.at(2));
  EXPECT_FALSE(std::filesystem::exists(assignments[0].config.checkpoint.folder));
  // Clipped: exp_avg after the first step is (1 - beta1) times a gradient of norm max_norm.
  double squared = 0;
  for (const auto& unit : run->states.at(1)) {
    for (const double value : unit[1]) squared += value * value;
  }
  EXPECT_GT(run->steps[0].grad_norm, assignments[0].config.training.max_norm);
  EXPECT_NEAR(std::sqrt(squared), 0.1 * assignments[0].config.training.max_norm, 1e-6);
}

TEST_F(TrainingRunFolderTest, TheRankThatFailsIsNamed) {
  std::vector<RankAssignment> assignments = OneDevice();
  assignments[0].data_digest = "other";
  EXPECT_EQ(TrainOnThreads(assignments).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace motley::engine
