// The planner's prediction of each rank's memory against what the rank holds.
#include "tests/worker/engine/equivalence/memory_predictions.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "tests/worker/engine/equivalence/equivalence.h"
#include "tests/worker/engine/equivalence/plan_assignments.h"

namespace motley::engine {
namespace {

class MeasuredMemoryTest : public testing::Test {
 protected:
  MeasuredMemoryTest() { WriteTinyText(folder_); }
  ~MeasuredMemoryTest() override { std::filesystem::remove_all(folder_); }

  std::vector<RankMemory> RanksOf(const PlannedJob& planned) {
    const absl::StatusOr<std::vector<RankMemory>> ranks = predictions_.AndMeasured(planned);
    EXPECT_TRUE(ranks.ok()) << ranks.status() << ToText(planned);
    return ranks.ok() ? *ranks : std::vector<RankMemory>();
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("memory_predictions_test-" + std::to_string(getpid()));
  MemoryPredictions predictions_;
};

TEST_F(MeasuredMemoryTest, RanksOfRandomPlansHoldWhatIsPredicted) {
  constexpr int kPlans = 12;
  constexpr double kMostMean = 0.01, kMostOff = 0.03;
  double sum = 0;
  int64_t count = 0;
  for (int n = 0; n < kPlans; ++n) {
    const PlannedJob planned = DrawWideJob(3, n, folder_);
    for (const RankMemory& rank : RanksOf(planned)) {
      const double excess = rank.Excess(kUncountedBytes);
      EXPECT_LE(std::abs(excess), kMostOff) << "plan " << n << "\n" << ToText(planned);
      sum += std::abs(excess);
      ++count;
    }
  }
  EXPECT_LE(sum, kMostMean * static_cast<double>(count));
}

// Of units of several ranks, too. Among them stages whose fullest moment is the attention of half a backward, and ranks that have
// what the division of the MLP's columns leaves over.
TEST_F(MeasuredMemoryTest, RanksOfTensorParallelPlansHoldWhatIsPredicted) {
  constexpr double kMostOff = 0.02;
  for (const auto& [seed, n] : {std::pair{7, 7}, std::pair{7, 10}, std::pair{20261125, 245}}) {
    const PlannedJob planned = DrawTensorParallelJob(static_cast<uint64_t>(seed), n, folder_);
    for (const RankMemory& rank : RanksOf(planned)) {
      EXPECT_LE(std::abs(rank.Excess(kUncountedBytes)), kMostOff) << "plan " << n << " of seed " << seed << "\n"
                                                                  << ToText(planned);
    }
  }
}

// The seconds of float64 differ from the threads' in the last digit, which has decided who computes which samples.
TEST_F(MeasuredMemoryTest, WhatIsPricedIsWhatRuns) {
  constexpr int kPlans = 40;
  for (int n = 0; n < kPlans; ++n) {
    const PlannedJob planned = DrawPlannedJob(2612, n, folder_);
    const absl::StatusOr<planner::Evaluation> priced = predictions_.Price(planned);
    const auto run = AssignmentsOf(planned.job.model, planned.job.config, planned.plan, FourSamples(planned.plan));
    ASSERT_TRUE(priced.ok() && run.ok()) << priced.status() << run.status();
    ASSERT_EQ(priced->programs.size(), run->size());
    for (size_t r = 0; r < run->size(); ++r) {
      EXPECT_EQ(ToText(priced->programs[r]), ToText((*run)[r].program)) << "rank " << r << " of plan " << n << "\n"
                                                                        << ToText(planned);
    }
  }
}

// The second rank owns most of every unit and computes nothing: its peak is where the buffers are made that take its shards in.
TEST_F(MeasuredMemoryTest, ShardsAndTheirHomesAreNotThereTwice) {
  PlannedJob planned;
  planned.job = Widened(MakeTinyJob(ModelFamily::kLlama, kTinySizes[0], DType::kFloat32, folder_));
  planned.plan = OneDevicePlan(planned.job);
  planner::StagePlan& stage = planned.plan.pipelines[0].stages[0];
  stage.zero_stage = 1;
  stage.units.push_back(stage.units[0]);
  stage.units[1].microbatches.clear();
  stage.units[1].ranks[0].device = DeviceId("n1/gpu0");
  stage.units[0].ranks[0].shard_ratio = 0.1;
  stage.units[1].ranks[0].shard_ratio = 0.9;
  const std::vector<RankMemory> ranks = RanksOf(planned);
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_EQ(ranks[1].Excess(kUncountedBytes), 0) << ranks[1].measured_bytes << " of " << ranks[1].predicted.total();
}

}  // namespace
}  // namespace motley::engine
