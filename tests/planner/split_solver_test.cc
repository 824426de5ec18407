// The exact solver against brute force. Reference: Cephalo section 2.4, eq. 2-3 with constraints I-III.
#include <algorithm>
#include <limits>
#include <random>

#include "gtest/gtest.h"
#include "planner/strategies/option_table.h"
#include "planner/strategies/split_problem.h"
#include "planner/strategies/state_knapsack.h"

namespace motley::planner {
namespace {

// Piecewise-linear or arbitrary positive tables: the solver may assume no shape.
SplitKind RandomKind(std::mt19937_64& random, int64_t batch, bool integers) {
  const auto real = [&](double low, double high) {
    return integers ? static_cast<double>(std::uniform_int_distribution<int>(1, 6)(random))
                    : std::uniform_real_distribution<double>(low, high)(random);
  };
  const auto bytes = [&](int high) { return std::uniform_int_distribution<int64_t>(0, high)(random); };
  SplitKind kind;
  kind.count = std::uniform_int_distribution<int>(1, 2)(random);
  kind.capacity_bytes = bytes(60);
  const int recompute = std::uniform_int_distribution<int>(0, 5)(random);
  kind.allow_keep = recompute != 0;
  kind.allow_recompute = recompute != 1;
  const size_t size = static_cast<size_t>(batch) + 1;
  kind.forward_seconds.assign(size, 0);
  kind.backward_seconds.assign(size, 0);
  kind.recompute_seconds.assign(size, 0);
  const double launch = real(0, 2), rate = real(0.1, 3);
  const bool wild = std::uniform_int_distribution<int>(0, 2)(random) == 0;
  for (size_t m = 1; m < size; ++m) {
    kind.forward_seconds[m] = wild ? real(0.1, 5) : launch + rate * static_cast<double>(m);
    kind.backward_seconds[m] = wild ? real(0.1, 8) : 2 * kind.forward_seconds[m];
    kind.recompute_seconds[m] = kind.forward_seconds[m] + kind.backward_seconds[m];
  }
  for (auto* terms : {&kind.keep_terms, &kind.recompute_terms}) {
    terms->resize(2);
    const int scale = terms == &kind.keep_terms ? 10 : 3;
    for (MemoryTerm& term : *terms) {
      const int64_t slope = bytes(scale), once = bytes(scale);
      term.each.assign(size, 0);
      term.once.assign(size, 0);
      for (size_t m = 1; m < size; ++m) {
        term.each[m] = wild ? bytes(4 * scale) : slope * static_cast<int64_t>(m);
        term.once[m] = once * static_cast<int64_t>(m);
      }
    }
  }
  return kind;
}

SplitProblem RandomProblem(std::mt19937_64& random) {
  SplitProblem problem;
  problem.batch = std::uniform_int_distribution<int64_t>(1, 7)(random);
  problem.state_bytes = std::uniform_int_distribution<int64_t>(0, 80)(random);
  const bool integers = std::uniform_int_distribution<int>(0, 2)(random) == 0;
  const int kinds = std::uniform_int_distribution<int>(1, 3)(random);
  int devices = 0;
  for (int k = 0; k < kinds; ++k) {
    problem.kinds.push_back(RandomKind(random, problem.batch, integers));
    if (devices + problem.kinds.back().count > 4) problem.kinds.back().count = 1;
    devices += problem.kinds.back().count;
  }
  const double floor = std::uniform_real_distribution<double>(0, 6)(random) * (random() % 2);
  for (const double share : {1.0 / devices, 0.7, 1.0}) {
    if (!problem.levels.empty() && share <= problem.levels.back().largest_share) continue;
    const double more = 1 + 0.3 * static_cast<double>(problem.levels.size());
    problem.levels.push_back({share, floor * more, 1.7 * floor * more});
  }
  return problem;
}

// Every split of the batch, every microbatch, every policy.
class BruteForce {
 public:
  explicit BruteForce(const SplitProblem& problem) : problem_(problem) {
    for (const SplitKind& kind : problem.kinds) {
      for (int i = 0; i < kind.count; ++i) devices_.push_back(&kind);
    }
  }
  double Solve() {
    for (level_ = 0; level_ < problem_.levels.size(); ++level_) Place(0, problem_.batch, 0, 0, 0);
    return best_;
  }

 private:
  void Place(size_t device, int64_t left, double forward, double backward, int64_t state) {
    const SkewLevel& level = problem_.levels[level_];
    if (device == devices_.size()) {
      if (left > 0 || state < problem_.state_bytes) return;
      best_ = std::min(best_, std::max(forward, level.forward_seconds) + std::max(backward, level.backward_seconds));
      return;
    }
    const SplitKind& kind = *devices_[device];
    Place(device + 1, left, forward, backward, state + StateLimit(problem_, level, kind.capacity_bytes));
    for (int64_t b = 1; b <= left; ++b) {
      for (int64_t m = 1; m <= b; ++m) {
        for (const bool recompute : {false, true}) {
          if (!(recompute ? kind.allow_recompute : kind.allow_keep)) continue;
          const int64_t bytes = PeakOfTerms(recompute ? kind.recompute_terms : kind.keep_terms, b, m);
          if (bytes > kind.capacity_bytes) continue;
          const std::vector<double>& seconds = recompute ? kind.recompute_seconds : kind.backward_seconds;
          const size_t mi = static_cast<size_t>(m), rest = static_cast<size_t>(b % m);
          const double full = static_cast<double>(b / m);
          Place(device + 1, left - b, std::max(forward, full * kind.forward_seconds[mi] + kind.forward_seconds[rest]),
                std::max(backward, full * seconds[mi] + seconds[rest]),
                state + StateLimit(problem_, level, kind.capacity_bytes - bytes));
        }
      }
    }
  }

  const SplitProblem& problem_;
  std::vector<const SplitKind*> devices_;
  size_t level_ = 0;
  double best_ = std::numeric_limits<double>::infinity();
};

// That the answer's own choices keep every promise.
void CheckAnswer(const SplitProblem& problem, const SplitAnswer& answer) {
  const SkewLevel& level = problem.levels[answer.level];
  double forward = level.forward_seconds, backward = level.backward_seconds;
  int64_t batch = 0, state = 0;
  for (size_t k = 0; k < problem.kinds.size(); ++k) {
    ASSERT_EQ(answer.choices[k].size(), static_cast<size_t>(problem.kinds[k].count));
    for (const SplitChoice& choice : answer.choices[k]) {
      batch += choice.batch;
      forward = std::max(forward, choice.forward_seconds);
      backward = std::max(backward, choice.backward_seconds);
      ASSERT_LE(choice.bytes, problem.kinds[k].capacity_bytes);
      state += StateLimit(problem, level, problem.kinds[k].capacity_bytes - choice.bytes);
      if (choice.batch == 0) continue;
      const auto& terms = choice.recompute ? problem.kinds[k].recompute_terms : problem.kinds[k].keep_terms;
      ASSERT_EQ(choice.bytes, PeakOfTerms(terms, choice.batch, choice.microbatch));
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

// Larger instances, where tables grow in rounds and hulls decide: the knapsack's quick answers against its exact one.
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
    for (const SplitKind& kind : problem.kinds) tables.emplace_back(kind, problem.batch);
    StateKnapsack knapsack(problem, tables);
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
