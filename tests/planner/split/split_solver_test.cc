// The exact solver against brute force. Reference: Cephalo section 2.4, eq. 2-3 with constraints I-III.
#include <limits>
#include <random>

#include "gtest/gtest.h"
#include "planner/split/option_table.h"
#include "planner/split/split_problem.h"
#include "planner/split/state_knapsack.h"
#include "tests/planner/split/split_instances.h"

namespace motley::planner {
namespace {

// That the answer's own choices keep every promise.
void CheckAnswer(const SplitProblem& problem, const SplitAnswer& answer) {
  const SkewLevel& level = problem.levels[answer.level];
  double forward = level.forward_seconds, backward = level.backward_seconds;
  int64_t batch = 0, state = 0;
  for (size_t k = 0; k < problem.kinds.size(); ++k) {
    ASSERT_EQ(answer.choices[k].size(), static_cast<size_t>(problem.kinds[k].count));
    for (const SplitChoice& choice : answer.choices[k]) {
      batch += choice.batch;
      ASSERT_GE(choice.batch, problem.least_batch);
      forward = std::max(forward, choice.forward_seconds);
      backward = std::max(backward, choice.backward_seconds);
      ASSERT_LE(choice.bytes, problem.kinds[k].capacity_bytes);
      state += StateLimit(problem, level, problem.kinds[k].capacity_bytes - choice.bytes);
      if (choice.batch == 0) continue;
      ASSERT_EQ(choice.bytes, BytesOfList(problem.kinds[k], choice.recompute, choice.batch, choice.microbatch));
      ASSERT_EQ(choice.forward_seconds, SecondsOfList(problem.kinds[k].forward_seconds, choice.batch, choice.microbatch));
    }
  }
  ASSERT_EQ(batch, problem.batch);
  ASSERT_GE(state, problem.state_bytes);
  ASSERT_LE(forward + backward, answer.seconds * (1 + 1e-12));
}

TEST(SplitSolverTest, EqualsBruteForceOnTwelveThousandInstances) {
  std::mt19937_64 random(20240601);
  int feasible = 0;
  for (int i = 0; i < 12000; ++i) {
    const SplitProblem problem = RandomProblem(random);
    const double expected = BruteForce(problem).Solve();
    const SplitAnswer answer = SolveSplit(problem);
    ASSERT_EQ(answer.feasible, expected < std::numeric_limits<double>::infinity()) << "instance " << i;
    if (!answer.feasible) continue;
    ++feasible;
    ASSERT_DOUBLE_EQ(answer.seconds, expected) << "instance " << i;
    CheckAnswer(problem, answer);
    if (HasFatalFailure()) FAIL() << "instance " << i;
  }
  // The instances are of both kinds.
  EXPECT_GT(feasible, 3000);
  EXPECT_LT(feasible, 11000);
}

// Tables that grow in rounds give the same answer as whole ones.
TEST(SplitSolverTest, GrowingTablesGiveTheSameAnswer) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 3000; ++i) {
    const SplitProblem whole = RandomProblem(random);
    SplitProblem growing = whole;
    const auto cut = [](auto* table, size_t size) { table->resize(std::min(table->size(), size)); };
    const auto copy = [&](size_t k, size_t size) {
      growing.kinds[k] = whole.kinds[k];
      cut(&growing.kinds[k].forward_seconds, size);
      cut(&growing.kinds[k].backward_seconds, size);
      cut(&growing.kinds[k].recompute_seconds, size);
      while (!growing.kinds[k].sizes.empty() && growing.kinds[k].sizes.back() >= static_cast<int64_t>(size))
        growing.kinds[k].sizes.pop_back();
    };
    for (size_t k = 0; k < whole.kinds.size(); ++k) copy(k, 1);
    const SplitAnswer answer =
        SolveSplit(&growing, whole.batch, [&](size_t k, int64_t size) { copy(k, static_cast<size_t>(size) + 1); });
    const SplitAnswer expected = SolveSplit(whole);
    ASSERT_EQ(answer.feasible, expected.feasible) << i;
    ASSERT_EQ(answer.seconds, expected.seconds) << i;
    ASSERT_EQ(answer.missing_bytes, expected.missing_bytes) << i;
  }
}

// Larger instances, where hulls decide: the knapsack's quick answers against its exact one.
TEST(SplitSolverTest, QuickAnswersAgreeWithTheExactKnapsack) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 2000; ++i) {
    SplitProblem problem = RandomProblem(random);
    problem.batch = 24;
    problem.kinds.clear();
    for (int k = 0; k < 3; ++k) {
      problem.kinds.push_back(RandomKind(random, problem.batch, false));
      problem.kinds.back().capacity_bytes *= 6;
    }
    problem.state_bytes = std::uniform_int_distribution<int64_t>(0, 1500)(random);
    std::vector<OptionTable> tables;
    tables.reserve(problem.kinds.size());
    for (const SplitKind& kind : problem.kinds) tables.emplace_back(kind, problem.batch);
    StateKnapsack knapsack(problem, &tables);
    const double bound = std::uniform_real_distribution<double>(1, 60)(random);
    for (const SkewLevel& level : problem.levels) {
      ASSERT_EQ(knapsack.Fits(bound, 2 * bound, level), knapsack.MostState(bound, 2 * bound, level) >= problem.state_bytes) << i;
    }
  }
}

TEST(SplitSolverTest, SaysHowMuchStateIsMissing) {
  SplitProblem problem;
  problem.batch = 2;
  problem.state_bytes = 100;
  problem.levels = {{1, 0, 0}};
  SplitKind kind;
  kind.count = 2;
  kind.capacity_bytes = 40;
  kind.forward_seconds = {0, 1, 2};
  kind.backward_seconds = kind.recompute_seconds = {0, 2, 4};
  kind.keep_terms = kind.recompute_terms = {{{0, 3, 6}, {0, 1, 2}}};
  problem.kinds = {kind};
  const SplitAnswer answer = SolveSplit(problem);
  EXPECT_FALSE(answer.feasible);
  // Two samples one by one on one device take 3 + 3 + 1; 33 + 40 remain.
  EXPECT_EQ(answer.missing_bytes, 100 - 73);
}

}  // namespace
}  // namespace motley::planner
