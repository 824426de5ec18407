// The planner's prediction of each rank's memory against what the rank holds.
#include "tests/worker/engine/equivalence/memory_predictions.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "tests/worker/engine/equivalence/equivalence.h"
#include "tests/worker/engine/equivalence/plan_assignments.h"

namespace motley::engine {
namespace {

class MeasuredMemoryTest : public testing::Test {
 protected:
  MeasuredMemoryTest() { WriteTinyText(folder_); }
  ~MeasuredMemoryTest() override { std::filesystem::remove_all(folder_); }

  std::vector<RankMemory> RanksOf(const PlannedJob& planned, Devices devices = Devices::kHosts) {
    const absl::StatusOr<std::vector<RankMemory>> ranks = predictions_.AndMeasured(planned, devices);
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

// The goal is never above, 1 % in the mean and 3 % at worst. Measured over 200 plans (MOTLEY_CARD_MEMORY_PLANS=200, a minute): 9
// to 16 of 902 ranks above, by up to 4.1 %, as the fake holds sends back; others up to 3.9 % below; 0.1 % in the mean.
TEST_F(MeasuredMemoryTest, CardsThatIssueAheadHoldNearlyWhatIsPredicted) {
  constexpr double kMostMean = 0.01, kMostOff = 0.06;
  const char* const plans = std::getenv("MOTLEY_CARD_MEMORY_PLANS");
  const int count = plans != nullptr ? std::atoi(plans) : 24;
  double sum = 0, most = -1, least = 1;
  int64_t ranks = 0, above = 0;
  for (int n = 0; n < count; ++n) {
    const PlannedJob planned = DrawWideJob(3, n, folder_);
    for (const RankMemory& rank : RanksOf(planned, Devices::kCards)) {
      const double excess = rank.Excess(kUncountedBytes);
      EXPECT_LE(std::abs(excess), kMostOff) << "plan " << n << "\n" << ToText(planned);
      sum += std::abs(excess);
      most = std::max(most, excess);
      least = std::min(least, excess);
      above += excess > 0;
      ++ranks;
    }
  }
  EXPECT_LE(sum, kMostMean * static_cast<double>(ranks));
  std::printf("%d ranks: mean %.2f %%, from %.2f %% to %.2f %%, %d above\n", static_cast<int>(ranks),
              100 * sum / static_cast<double>(ranks), 100 * least, 100 * most, static_cast<int>(above));
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
  for (int n = 0; n < 2 * kPlans; ++n) {
    const PlannedJob plain = DrawPlannedJob(2612, n / 2, folder_);
    const PlannedJob planned = n % 2 == 0 ? plain : WithDrawnOffload(plain, static_cast<uint64_t>(n));
    const absl::StatusOr<planner::Evaluation> priced = predictions_.Price(planned);
    const auto run = AssignmentsOf(planned.job.model, planned.job.config, planned.plan, FourSamples(planned.plan));
    ASSERT_TRUE(priced.ok() && run.ok()) << priced.status() << run.status();
    ASSERT_EQ(priced->programs.size(), run->size());
    for (size_t r = 0; r < run->size(); ++r) {
      EXPECT_EQ(ToText(priced->programs[r]), ToText((*run)[r].program)) << "rank " << r << " of plan " << n / 2 << "\n"
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
