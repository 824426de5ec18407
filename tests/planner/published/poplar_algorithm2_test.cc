#include "planner/published/poplar_algorithm2.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "planner/strategies/poplar/poplar_exact.h"
#include "tests/planner/strategies/poplar/poplar_instances.h"

namespace motley::planner {
namespace {

using ::testing::ElementsAre;

TEST(PoplarAlgorithm2Test, IsNeverBetterAndAlwaysComplete) {
  std::mt19937 random(3);
  for (int i = 0; i < 2000; ++i) {
    PoplarProblem problem = RandomPoplarProblem(&random, i % 2 == 0);
    for (PoplarKind& kind : problem.kinds) kind.ways.resize(1);
    const PoplarAnswer published = SolvePoplarPublished(problem), exact = SolvePoplarExact(problem);
    ASSERT_EQ(published.feasible, exact.feasible);
    if (!exact.feasible) continue;
    EXPECT_EQ(SamplesOf(published), problem.batch);
    EXPECT_GE(published.seconds, exact.seconds - 1e-9);
    EXPECT_LE(PriceOf(problem, published), published.seconds + 1e-9);
  }
}

// Two cards, one twice as fast: 9 samples go 6 to 3, in microbatches at the peak of each curve.
TEST(PoplarAlgorithm2Test, SplitsInProportionToPeakSpeed) {
  PoplarProblem problem;
  problem.batch = 9;
  problem.kinds = {{1, {PoplarLine(0, 1, 4)}}, {1, {PoplarLine(0, 2, 2)}}};
  const PoplarAnswer answer = SolvePoplarPublished(problem);
  ASSERT_TRUE(answer.feasible);
  EXPECT_THAT(answer.shares[0][0].microbatches, ElementsAre(4, 2));  // the last is smaller: lbs
  EXPECT_THAT(answer.shares[1][0].microbatches, ElementsAre(2, 1));
  EXPECT_DOUBLE_EQ(answer.seconds, 6);
}

// As printed u is constant and the remaining sample would go anywhere: it must go where it ends earliest.
TEST(PoplarAlgorithm2Test, GivesRemainingSamplesToWhoEndsFirst) {
  PoplarProblem problem;
  problem.batch = 4;
  problem.kinds = {{1, {PoplarLine(0, 10, 4)}}, {1, {PoplarLine(0, 3, 4)}}};
  const PoplarAnswer answer = SolvePoplarPublished(problem);
  // 4 samples at 1/10 + 1/3 a second take 9.2 s: 0 and 3 samples; the fourth ends at 10 s on the first, at 12 s on the second.
  EXPECT_THAT(answer.shares[0][0].microbatches, ElementsAre(1));
  EXPECT_THAT(answer.shares[1][0].microbatches, ElementsAre(3));
}

// One round that both cards fill.
TEST(PoplarAlgorithm2Test, DearRoundsAreFew) {
  PoplarProblem problem;
  problem.batch = 8;
  problem.synchronise_rounds = true;
  problem.kinds = {{1, {PoplarLine(0, 1, 6)}}, {1, {PoplarLine(0, 3, 2)}}};
  problem.round_seconds = 100;
  EXPECT_THAT(SolvePoplarPublished(problem).shares[0][0].microbatches, ElementsAre(6));
  EXPECT_DOUBLE_EQ(SolvePoplarPublished(problem).seconds, 106);
}

TEST(PoplarAlgorithm2Test, NothingFitsIsNotFeasible) {
  PoplarProblem problem;
  problem.batch = 8;
  problem.kinds = {{1, {{}, {}}}};
  for (const bool rounds : {false, true}) {
    problem.synchronise_rounds = rounds;
    EXPECT_FALSE(SolvePoplarPublished(problem).feasible);
  }
}

}  // namespace
}  // namespace motley::planner
