#include "planner/strategies/poplar/poplar_problem.h"

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

// launch + m / speed.
std::vector<double> Line(double launch, double seconds_a_sample, int64_t largest) {
  std::vector<double> table = {0};
  for (int64_t m = 1; m <= largest; ++m) table.push_back(launch + seconds_a_sample * static_cast<double>(m));
  return table;
}

double SecondsOf(const std::vector<double>& table, const std::vector<int64_t>& microbatches) {
  double sum = 0;
  for (const int64_t m : microbatches) sum += table[m];
  return sum;
}

int64_t SamplesOf(const PoplarAnswer& answer) {
  int64_t sum = 0;
  for (const auto& kind : answer.shares) {
    for (const PoplarShare& share : kind) sum = std::accumulate(share.microbatches.begin(), share.microbatches.end(), sum);
  }
  return sum;
}

// The objective as poplar_problem.h states it, from the answer's microbatches alone. Infinite for a microbatch that does not fit.
double PriceOf(const PoplarProblem& problem, const PoplarAnswer& answer) {
  double slowest = 0;
  std::vector<double> rounds;
  for (size_t k = 0; k < answer.shares.size(); ++k) {
    for (const PoplarShare& share : answer.shares[k]) {
      const std::vector<double>& table = problem.kinds[k].ways[share.way];
      rounds.resize(std::max(rounds.size(), share.microbatches.size()), 0);
      for (size_t r = 0; r < share.microbatches.size(); ++r) {
        if (share.microbatches[r] >= static_cast<int64_t>(table.size())) return std::numeric_limits<double>::infinity();
        rounds[r] = std::max(rounds[r], table[share.microbatches[r]]);
      }
      slowest = std::max(slowest, SecondsOf(table, share.microbatches));
    }
  }
  if (!problem.synchronise_rounds) return slowest;
  double sum = 0;
  for (const double t : rounds) {
    const double c = problem.round_seconds;
    sum += problem.overlap * std::max(t, c) + (1 - problem.overlap) * (t + c);
  }
  return sum;
}

TEST(PoplarProblemTest, AgreesWithBruteForceWithoutRounds) {
  std::mt19937 random(1);
  int feasible = 0;
  for (int i = 0; i < 600; ++i) {
    const PoplarProblem problem = RandomPoplarProblem(&random, false);
    const PoplarAnswer answer = SolvePoplarExact(problem);
    const double brute = PoplarByBruteForce(problem);
    ASSERT_EQ(answer.feasible, brute < std::numeric_limits<double>::infinity()) << "instance " << i;
    if (!answer.feasible) continue;
    ++feasible;
    EXPECT_EQ(SamplesOf(answer), problem.batch);
    EXPECT_NEAR(PriceOf(problem, answer), answer.seconds, 1e-9);
    EXPECT_NEAR(answer.seconds, brute, 1e-9) << "instance " << i;
  }
  EXPECT_GT(feasible, 400);
}

TEST(PoplarProblemTest, AgreesWithBruteForceInRounds) {
  std::mt19937 random(2);
  int feasible = 0;
  for (int i = 0; i < 600; ++i) {
    const PoplarProblem problem = RandomPoplarProblem(&random, true);
    const PoplarAnswer answer = SolvePoplarExact(problem);
    const double brute = PoplarByBruteForce(problem);
    ASSERT_EQ(answer.feasible, brute < std::numeric_limits<double>::infinity()) << "instance " << i;
    if (!answer.feasible) continue;
    ++feasible;
    EXPECT_EQ(SamplesOf(answer), problem.batch);
    EXPECT_LE(PriceOf(problem, answer), answer.seconds + 1e-9);
    EXPECT_NEAR(answer.seconds, brute, 1e-9) << "instance " << i;
  }
  EXPECT_GT(feasible, 400);
}

TEST(PoplarProblemTest, ThePublishedSearchIsNeverBetterAndAlwaysComplete) {
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
TEST(PoplarProblemTest, PublishedSplitsInProportionToPeakSpeed) {
  PoplarProblem problem;
  problem.batch = 9;
  problem.kinds = {{1, {Line(0, 1, 4)}}, {1, {Line(0, 2, 2)}}};
  const PoplarAnswer answer = SolvePoplarPublished(problem);
  ASSERT_TRUE(answer.feasible);
  EXPECT_THAT(answer.shares[0][0].microbatches, ElementsAre(4, 2));  // the last is smaller: lbs
  EXPECT_THAT(answer.shares[1][0].microbatches, ElementsAre(2, 1));
  EXPECT_DOUBLE_EQ(answer.seconds, 6);
}

// As printed u is constant and the remaining sample would go anywhere: it must go where it ends earliest.
TEST(PoplarProblemTest, PublishedGivesRemainingSamplesToWhoEndsFirst) {
  PoplarProblem problem;
  problem.batch = 4;
  problem.kinds = {{1, {Line(0, 10, 4)}}, {1, {Line(0, 3, 4)}}};
  const PoplarAnswer answer = SolvePoplarPublished(problem);
  // 4 samples at 1/10 + 1/3 a second take 9.2 s: 0 and 3 samples; the fourth ends at 10 s on the first, at 12 s on the second.
  EXPECT_THAT(answer.shares[0][0].microbatches, ElementsAre(1));
  EXPECT_THAT(answer.shares[1][0].microbatches, ElementsAre(3));
}

// Dear rounds make few large ones, cheap rounds many balanced ones.
TEST(PoplarProblemTest, RoundsTradeImbalanceForCommunication) {
  PoplarProblem problem;
  problem.batch = 8;
  problem.synchronise_rounds = true;
  problem.kinds = {{1, {Line(0, 1, 6)}}, {1, {Line(0, 3, 2)}}};
  problem.round_seconds = 100;
  EXPECT_THAT(SolvePoplarPublished(problem).shares[0][0].microbatches, ElementsAre(6));
  EXPECT_DOUBLE_EQ(SolvePoplarPublished(problem).seconds, 106);
  problem.round_seconds = 0;
  const PoplarAnswer cheap = SolvePoplarExact(problem);
  EXPECT_DOUBLE_EQ(cheap.seconds, 6);
}

TEST(PoplarProblemTest, ADeviceMayGetNothing) {
  PoplarProblem problem;
  problem.batch = 3;
  problem.kinds = {{1, {Line(0, 1, 8)}}, {2, {Line(0, 100, 8)}}};
  const PoplarAnswer answer = SolvePoplarExact(problem);
  EXPECT_THAT(answer.shares[1][0].microbatches, IsEmpty());
  EXPECT_DOUBLE_EQ(answer.seconds, 3);
}

TEST(PoplarProblemTest, ChoosesTheWayThatAllowsLargerMicrobatches) {
  PoplarProblem problem;
  problem.batch = 8;
  problem.synchronise_rounds = true;
  problem.round_seconds = 10;
  problem.kinds = {{1, {Line(0, 1, 2), Line(0, 1.3, 8)}}};
  const PoplarAnswer answer = SolvePoplarExact(problem);
  EXPECT_EQ(answer.shares[0][0].way, 1u);
  EXPECT_THAT(answer.shares[0][0].microbatches, ElementsAre(8));
}

TEST(PoplarProblemTest, NothingFitsIsNotFeasible) {
  PoplarProblem problem;
  problem.batch = 8;
  problem.kinds = {{1, {{}, {}}}};
  for (const bool rounds : {false, true}) {
    problem.synchronise_rounds = rounds;
    EXPECT_FALSE(SolvePoplarExact(problem).feasible);
    EXPECT_FALSE(SolvePoplarPublished(problem).feasible);
  }
}

}  // namespace
}  // namespace motley::planner
