#include "planner/strategies/poplar/poplar_exact.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "tests/planner/strategies/poplar/poplar_instances.h"

namespace motley::planner {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// In rounds what an answer says of its seconds is a bound.
void ExpectAsByBruteForce(uint32_t seed, bool rounds) {
  std::mt19937 random(seed);
  int feasible = 0;
  for (int i = 0; i < 600; ++i) {
    const PoplarProblem problem = RandomPoplarProblem(&random, rounds);
    const PoplarAnswer answer = SolvePoplarExact(problem);
    const double brute = PoplarByBruteForce(problem);
    ASSERT_EQ(answer.feasible, brute < std::numeric_limits<double>::infinity()) << "instance " << i;
    if (!answer.feasible) continue;
    ++feasible;
    EXPECT_EQ(SamplesOf(answer), problem.batch);
    EXPECT_LE(PriceOf(problem, answer), answer.seconds + 1e-9);
    if (!rounds) EXPECT_GE(PriceOf(problem, answer), answer.seconds - 1e-9);
    EXPECT_NEAR(answer.seconds, brute, 1e-9) << "instance " << i;
  }
  EXPECT_GT(feasible, 400);
}

TEST(PoplarExactTest, AgreesWithBruteForceWithoutRounds) { ExpectAsByBruteForce(1, false); }
TEST(PoplarExactTest, AgreesWithBruteForceInRounds) { ExpectAsByBruteForce(2, true); }

// Dear rounds make few large ones, cheap rounds many balanced ones.
TEST(PoplarExactTest, RoundsTradeImbalanceForCommunication) {
  PoplarProblem problem;
  problem.batch = 8;
  problem.synchronise_rounds = true;
  problem.kinds = {{1, {PoplarLine(0, 1, 6)}}, {1, {PoplarLine(0, 3, 2)}}};
  problem.round_seconds = 100;
  EXPECT_DOUBLE_EQ(SolvePoplarExact(problem).seconds, 106);
  problem.round_seconds = 0;
  const PoplarAnswer cheap = SolvePoplarExact(problem);
  EXPECT_DOUBLE_EQ(cheap.seconds, 6);
}

TEST(PoplarExactTest, ADeviceMayGetNothing) {
  PoplarProblem problem;
  problem.batch = 3;
  problem.kinds = {{1, {PoplarLine(0, 1, 8)}}, {2, {PoplarLine(0, 100, 8)}}};
  const PoplarAnswer answer = SolvePoplarExact(problem);
  EXPECT_THAT(answer.shares[1][0].microbatches, IsEmpty());
  EXPECT_DOUBLE_EQ(answer.seconds, 3);
}

TEST(PoplarExactTest, ChoosesTheWayThatAllowsLargerMicrobatches) {
  PoplarProblem problem;
  problem.batch = 8;
  problem.synchronise_rounds = true;
  problem.round_seconds = 10;
  problem.kinds = {{1, {PoplarLine(0, 1, 2), PoplarLine(0, 1.3, 8)}}};
  const PoplarAnswer answer = SolvePoplarExact(problem);
  EXPECT_EQ(answer.shares[0][0].way, 1u);
  EXPECT_THAT(answer.shares[0][0].microbatches, ElementsAre(8));
}

TEST(PoplarExactTest, NothingFitsIsNotFeasible) {
  PoplarProblem problem;
  problem.batch = 8;
  problem.kinds = {{1, {{}, {}}}};
  for (const bool rounds : {false, true}) {
    problem.synchronise_rounds = rounds;
    EXPECT_FALSE(SolvePoplarExact(problem).feasible);
  }
}

}  // namespace
}  // namespace motley::planner
