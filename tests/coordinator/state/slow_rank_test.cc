#include "coordinator/state/slow_rank.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace motley::coordinator {
namespace {

using testing::HasSubstr;

// Fifteen steps are more than half a minute. Times below are in units of ten seconds.
constexpr double kUnit = 10;
constexpr double kPredicted = 0.3;  // of a step; each rank is in collectives for 0.05 of it

LaneSeconds Waiting(double collective, double bubble = 0) {
  LaneSeconds lanes;
  lanes.busy[static_cast<size_t>(Lane::kCollective)] = kUnit * (0.05 + collective);
  lanes.bubble = kUnit * bubble;
  return lanes;
}

class SlowRankTest : public testing::Test {
 protected:
  SlowRankTest() { Begin(); }
  void Begin() {
    watch_.Begin({DeviceId("a/gpu0"), DeviceId("b/gpu0"), DeviceId("c/gpu0")}, {Waiting(0), Waiting(0), Waiting(0)},
                 kUnit * kPredicted);
  }
  // A step in which ranks' work takes so much longer; all wait for the one that takes longest.
  void Step(std::array<double, 3> longer) {
    ++step_;
    const double most = std::max(0.0, *std::max_element(longer.begin(), longer.end()));
    for (int rank = 0; rank < 3; ++rank) watch_.OnReport(rank, step_, kUnit * (kPredicted + most), Waiting(most - longer[rank]));
  }
  std::string Named() const { return watch_.slow() ? watch_.slow()->device.value() : ""; }

  SlowRankWatch watch_;
  int64_t step_ = 0;
};

TEST_F(SlowRankTest, TheRankThatAllOthersWaitForIsNamed) {
  for (int i = 0; i < 14; ++i) Step({0, 1, 0});
  EXPECT_EQ(Named(), "") << "fifteen steps are looked at";
  Step({0, 1, 0});
  EXPECT_EQ(Named(), "b/gpu0");
  EXPECT_THAT(
      watch_.Sentence(JobId("train")),
      HasSubstr("b/gpu0 slows the job down: in 15 of 15 steps all others waited for it, and steps take 13 s, predicted 3 s"));
  EXPECT_THAT(watch_.Sentence(JobId("train")), HasSubstr("motley plan train --exclude b/gpu0"));
  for (int i = 0; i < 10; ++i) Step({0, 0, 0});
  EXPECT_EQ(Named(), "") << "it is not slow any more";
}

TEST_F(SlowRankTest, StagesWaitInBubblesAndNotAllStepsNeedTellIt) {
  for (step_ = 1; step_ <= 15; ++step_) {
    const bool tells = step_ % 2 == 0;  // in the others the rank was stopped inside a collective: all look alike
    for (int rank = 0; rank < 3; ++rank) {
      watch_.OnReport(rank, step_, kUnit * 1.3, tells && rank == 2 ? Waiting(0) : rank == 1 ? Waiting(0.1, 0.8) : Waiting(0.9));
    }
  }
  EXPECT_EQ(Named(), "c/gpu0");
}

// Stops in time with the steps: of five one is stopped where all look alike, and two are as predicted.
TEST_F(SlowRankTest, TwoOfFiveStepsAreEnoughWhereNobodyElseHoldsUp) {
  for (const bool noise : {false, true}) {
    Begin();
    for (step_ = 1; step_ <= 15; ++step_) {
      const int64_t beat = step_ % 5;
      const int slow = beat < 2 ? 1 : noise && step_ == 7 ? 0 : -1;  // rank
      for (int rank = 0; rank < 3; ++rank) {
        watch_.OnReport(rank, step_, kUnit * (kPredicted + (beat < 3 ? 1 : 0)), Waiting(slow < 0 || rank == slow ? 0 : 0.95));
      }
    }
    EXPECT_EQ(Named(), noise ? "" : "b/gpu0") << noise;
  }
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
    for (int rank = 0; rank < 3; ++rank) watch_.OnReport(rank, step_, kUnit * 3, Waiting(2.7));
  }
  EXPECT_EQ(Named(), "");
}

TEST_F(SlowRankTest, TwoThatTakeTurnsNameNobody) {
  for (int i = 0; i < 40; ++i) Step({i % 2 == 0 ? 1.0 : 0, i % 2 == 0 ? 0 : 1.0, 0});
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

// Of short steps fifteen are over in a moment: what a host does in bursts of seconds is one word, or none.
class ShortStepsTest : public testing::Test {
 protected:
  static constexpr double kStep = 0.08;
  ShortStepsTest() { watch_.Begin({DeviceId("a/gpu0"), DeviceId("b/gpu0")}, {LaneSeconds(), LaneSeconds()}, kStep); }
  void Step(double longer) {
    LaneSeconds waits;
    waits.bubble = longer;
    watch_.OnReport(0, ++step_, kStep + longer, waits);
    watch_.OnReport(1, step_, kStep + longer, LaneSeconds());
    const bool named = watch_.slow().has_value();
    changes_ += named != was_named_;
    was_named_ = named;
  }
  // For half of the time, in bursts of `steps`.
  void Bursts(int steps, double longer) {
    for (int i = 0; i < 3000; ++i) Step(i / steps % 2 == 0 ? longer : 0);
  }

  SlowRankWatch watch_;
  int64_t step_ = 0;
  int changes_ = 0;
  bool was_named_ = false;
};

TEST_F(ShortStepsTest, ARankThatIsSlowInBurstsIsNamedOnce) {
  Bursts(20, kStep);
  EXPECT_EQ(changes_, 1);
  EXPECT_TRUE(was_named_);
}

TEST_F(ShortStepsTest, OneAtTheBorderIsNotNamedAgainAndAgain) {
  Bursts(20, 0.51 * kStep);
  EXPECT_LE(changes_, 2);
}

TEST_F(ShortStepsTest, HalfAMinuteIsLookedAt) {
  for (int i = 0; i < 180; ++i) Step(kStep);  // 28.8 s
  EXPECT_FALSE(was_named_);
  for (int i = 0; i < 8; ++i) Step(kStep);
  EXPECT_TRUE(was_named_);
  EXPECT_THAT(watch_.Sentence(JobId("j")), HasSubstr("b/gpu0 slows the job down: in 188 of 188 steps all others waited for it"));
}

TEST_F(SlowRankTest, ReportsComeInAnyOrderAndMayBeMissing) {
  for (int64_t step = 1; step <= 16; ++step) {
    for (const int rank : {2, 0, 1}) {
      if (step == 5 && rank == 0) continue;
      watch_.OnReport(rank, step, kUnit * 1.3, Waiting(rank == 1 ? 0 : 1));
      watch_.OnReport(rank, step, kUnit * 1.3, Waiting(100));  // again: the first counts
    }
    watch_.OnReport(7, step, kUnit, Waiting(1));  // nobody's
  }
  EXPECT_EQ(Named(), "b/gpu0");
}

TEST_F(SlowRankTest, AnotherGenerationBeginsAnew) {
  for (int i = 0; i < 15; ++i) Step({0, 1, 0});
  EXPECT_EQ(Named(), "b/gpu0");
  Begin();
  EXPECT_EQ(Named(), "");
  watch_.Begin({DeviceId("a/gpu0")}, {Waiting(0)}, kUnit * kPredicted);
  for (int i = 0; i < 20; ++i) watch_.OnReport(0, i, kUnit * 9, Waiting(0));
  EXPECT_EQ(Named(), "") << "nobody waits for the only one";
}

}  // namespace
}  // namespace motley::coordinator
