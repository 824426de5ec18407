// The paper's eq. 4 against its own definition by brute force. Reference: Cephalo section 2.4, eq. 4, algorithm 1.
#include "planner/published/cephalo_equation4.h"

#include <random>

#include "gtest/gtest.h"
#include "tests/planner/split/split_instances.h"

namespace motley::planner {
namespace {

// Every assignment of l whole microbatches of size m, at least one sample for every device.
class PrintedProblem {
 public:
  explicit PrintedProblem(const SplitProblem& problem) : problem_(problem) {
    for (const SplitKind& kind : problem.kinds) {
      for (int i = 0; i < kind.count; ++i) devices_.push_back(&kind);
      room_ += kind.capacity_bytes * kind.count;
    }
    room_ -= problem.state_bytes;
  }
  double Solve() {
    Place(0, problem_.batch, 0, 0);
    return best_;
  }

 private:
  void Place(size_t device, int64_t left, double seconds, int64_t bytes) {
    if (device == devices_.size()) {
      if (left == 0 && bytes <= room_) best_ = std::min(best_, seconds);
      return;
    }
    const SplitKind& kind = *devices_[device];
    for (const int64_t m : SizesOf(kind)) {
      for (int64_t l = 1; l * m <= left; ++l) {
        for (const bool recompute : {false, true}) {
          if (!(recompute ? kind.allow_recompute : kind.allow_keep)) continue;
          const int64_t memory = BytesOfList(kind, recompute, l * m, m);
          if (memory > kind.capacity_bytes) continue;
          const bool uneven = memory + problem_.state_bytes / static_cast<int64_t>(devices_.size()) > kind.capacity_bytes;
          const SkewLevel& level = uneven ? problem_.levels.back() : problem_.levels.front();
          const double t = std::max(SecondsOfList(kind.forward_seconds, l * m, m), level.forward_seconds) +
                           std::max(SecondsOfList(recompute ? kind.recompute_seconds : kind.backward_seconds, l * m, m),
                                    level.backward_seconds);
          Place(device + 1, left - l * m, std::max(seconds, t), bytes + memory);
        }
      }
    }
  }

  const SplitProblem& problem_;
  std::vector<const SplitKind*> devices_;
  int64_t room_ = 0;
  double best_ = std::numeric_limits<double>::infinity();
};

TEST(CephaloEquation4Test, EqualsItsDefinitionOnRandomInstances) {
  std::mt19937_64 random(4);
  int feasible = 0;
  for (int i = 0; i < 4000; ++i) {
    SplitProblem problem = RandomProblem(random);
    problem.least_batch = 1;
    const double expected = PrintedProblem(problem).Solve();
    const Equation4Answer answer = SolveEquation4(&problem, problem.batch, nullptr);
    ASSERT_EQ(answer.split.feasible, expected < std::numeric_limits<double>::infinity()) << i;
    if (!answer.split.feasible) continue;
    ++feasible;
    ASSERT_DOUBLE_EQ(answer.printed_seconds, expected) << i;
    int64_t batch = 0;
    for (const auto& kind : answer.split.choices) {
      for (const SplitChoice& choice : kind) {
        EXPECT_GE(choice.batch, 1);
        EXPECT_EQ(choice.batch % choice.microbatch, 0);
        batch += choice.batch;
      }
    }
    ASSERT_EQ(batch, problem.batch) << i;
  }
  EXPECT_GT(feasible, 400);
}

// What the printed recurrence misses. One sample on the first device, two on the second: both sums are 6, but the first is slow
// forward and the second backward, so the step takes 4 + 5. Two and one: sums of 7 and 3, and a step of 4.5 + 2.5.
TEST(CephaloEquation4Test, SumsHideTheBarrierBetweenThePasses) {
  SplitKind slow_forward;
  slow_forward.capacity_bytes = 100;
  slow_forward.allow_recompute = false;
  slow_forward.forward_seconds = {0, 4, 4.5};
  slow_forward.backward_seconds = {0, 2, 2.5};
  slow_forward.keep_terms = {{{0, 1, 2}, {0, 0, 0}}};
  SplitKind slow_backward = slow_forward;
  slow_backward.forward_seconds = {0, 0.5, 1};
  slow_backward.backward_seconds = {0, 2.5, 5};
  SplitProblem problem;
  problem.batch = 3;
  problem.levels = {{1, 0, 0}};
  problem.kinds = {slow_forward, slow_backward};
  problem.least_batch = 1;
  const Equation4Answer answer = SolveEquation4(&problem, 3, nullptr);
  ASSERT_TRUE(answer.split.feasible);
  EXPECT_DOUBLE_EQ(answer.printed_seconds, 6);
  EXPECT_DOUBLE_EQ(answer.split.seconds, 9);
  EXPECT_DOUBLE_EQ(SolveSplit(problem).seconds, 7);
}

TEST(CephaloEquation4Test, TooFewSamplesForEveryDeviceDoNotFit) {
  std::mt19937_64 random(1);
  SplitProblem problem = RandomProblem(random);
  problem.kinds[0].count = 5;
  problem.batch = 4;
  EXPECT_FALSE(SolveEquation4(&problem, 4, nullptr).split.feasible);
}

}  // namespace
}  // namespace motley::planner
