#include "coordinator/state/slow_rank.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace motley::coordinator {
namespace {

using testing::HasSubstr;

constexpr double kPredicted = 0.3;  // of a step; each rank computes 0.25 s of it

LaneSeconds Own(double compute, double host = 0) {
  LaneSeconds lanes;
  lanes.busy[static_cast<size_t>(Lane::kCompute)] = compute;
  lanes.host = host;
  return lanes;
}

class SlowRankTest : public testing::Test {
 protected:
  SlowRankTest() { Begin(); }
  void Begin() {
    watch_.Begin({DeviceId("a/gpu0"), DeviceId("b/gpu0"), DeviceId("c/gpu0")}, {Own(0.25), Own(0.25), Own(0.25)}, kPredicted);
  }
  // A step in which ranks take so much longer; the step takes as much longer as the one that takes longest.
  void Step(std::array<double, 3> longer) {
    ++step_;
    const double seconds = kPredicted + std::max(0.0, *std::max_element(longer.begin(), longer.end()));
    for (int rank = 0; rank < 3; ++rank) watch_.OnReport(rank, step_, seconds, Own(0.25 + longer[rank]));
  }
  std::string Named() const { return watch_.slow() ? watch_.slow()->device.value() : ""; }

  SlowRankWatch watch_;
  int64_t step_ = 0;
};

TEST_F(SlowRankTest, TheRankWhoseOwnWorkTakesLongerIsNamed) {
  for (int i = 0; i < 14; ++i) Step({0, 1, 0});
  EXPECT_EQ(Named(), "") << "fifteen steps are looked at";
  Step({0, 1, 0});
  EXPECT_EQ(Named(), "b/gpu0");
  EXPECT_THAT(watch_.Sentence(JobId("train")),
              HasSubstr("b/gpu0 slows the job down: over 15 steps its own work took 1.25 s a step, predicted 0.25 s"));
  EXPECT_THAT(watch_.Sentence(JobId("train")), HasSubstr("motley plan train --exclude b/gpu0"));
  for (int i = 0; i < 4; ++i) Step({0, 0, 0});
  EXPECT_EQ(Named(), "") << "it is not slow any more";
}

TEST_F(SlowRankTest, TimeBetweenInstructionsIsItsOwnToo) {
  for (step_ = 1; step_ <= 15; ++step_) {
    for (int rank = 0; rank < 3; ++rank) watch_.OnReport(rank, step_, 1.3, Own(0.25, rank == 2 ? 1 : 0));
  }
  EXPECT_EQ(Named(), "c/gpu0");
}

TEST_F(SlowRankTest, WhereAllAreSlowNobodyIs) {
  for (int i = 0; i < 30; ++i) Step({1, 1.1, 0.9});
  EXPECT_EQ(Named(), "");
}

TEST_F(SlowRankTest, OneLongMomentNamesNobody) {
  for (int i = 0; i < 30; ++i) {
    Step({0, i % 10 == 0 ? 20.0 : 0, 0});
    EXPECT_EQ(Named(), "") << i;
  }
}

TEST_F(SlowRankTest, ASlowLinkIsNoRanks) {
  for (step_ = 1; step_ <= 20; ++step_) {
    for (int rank = 0; rank < 3; ++rank) watch_.OnReport(rank, step_, 3, Own(0.25));
  }
  EXPECT_EQ(Named(), "");
}

// Every rank now and then, each step somebody: as on a host that others use.
TEST_F(SlowRankTest, ANoisyHostNamesNobodyInThousandSteps) {
  for (const double seconds : {0.05, 0.15, 0.3}) {
    Begin();
    std::mt19937 random(1);
    std::exponential_distribution<double> noise(1 / seconds);
    for (int i = 0; i < 1000; ++i) {
      Step({noise(random), noise(random), noise(random)});
      ASSERT_EQ(Named(), "") << "step " << i << ", " << seconds << " s of noise";
    }
  }
}

TEST_F(SlowRankTest, ReportsComeInAnyOrderAndMayBeMissing) {
  for (int64_t step = 1; step <= 16; ++step) {
    for (const int rank : {2, 0, 1}) {
      if (step == 5 && rank == 0) continue;
      watch_.OnReport(rank, step, 1.3, Own(0.25 + (rank == 1 ? 1 : 0)));
      watch_.OnReport(rank, step, 1.3, Own(100));  // again: the first counts
    }
    watch_.OnReport(7, step, 1, Own(1));  // nobody's
  }
  EXPECT_EQ(Named(), "b/gpu0");
}

TEST_F(SlowRankTest, AnotherGenerationBeginsAnew) {
  for (int i = 0; i < 15; ++i) Step({0, 1, 0});
  EXPECT_EQ(Named(), "b/gpu0");
  Begin();
  EXPECT_EQ(Named(), "");
  watch_.Begin({DeviceId("a/gpu0")}, {Own(0.25)}, kPredicted);
  for (int i = 0; i < 20; ++i) watch_.OnReport(0, i, 9, Own(9));
  EXPECT_EQ(Named(), "") << "nobody waits for the only one";
}

}  // namespace
}  // namespace motley::coordinator
