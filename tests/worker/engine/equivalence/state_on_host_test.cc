// Programs whose state waits in host memory compute the bits of the same programs with all of it on the device.
#include "tests/worker/engine/equivalence/state_on_host.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/program/host_slots.h"
#include "tests/worker/engine/equivalence/equivalence.h"
#include "tests/worker/engine/equivalence/plan_assignments.h"
#include "tests/worker/engine/equivalence/program_mutants.h"
#include "tests/worker/engine/equivalence/training_run.h"
#include "worker/engine/check_slots.h"

namespace motley::engine {
namespace {

constexpr uint64_t kStateSeed = 9;
constexpr int64_t kStateSteps = 3;

using Assignments = std::vector<RankAssignment>;

constexpr OffloadKinds kParameters = {.parameters = true}, kGradients = {.gradients = true}, kOptimizer = {.optimizer = true};
constexpr OffloadKinds kAllState = {.parameters = true, .gradients = true, .optimizer = true};

// Every set of kinds, at the end and in turn.
const StateOnHost kWays[] = {
    {kOptimizer},
    {kAllState},
    {kParameters},
    {.kinds = kAllState, .in_turn = true},
    {kGradients},
    {.in_turn = true},
    {kParameters.Or(kOptimizer)},
    {.kinds = kParameters.Or(kOptimizer), .in_turn = true},
    {kGradients.Or(kOptimizer)},
    {.kinds = kOptimizer, .in_turn = true, .from_buffers = false},
    {kParameters.Or(kGradients)},
    {.kinds = kParameters, .in_turn = true},
};

std::string ToText(const StateOnHost& how) {
  return absl::StrCat(InWords(how.kinds), how.in_turn ? ", in turn" : "", how.from_buffers ? "" : " from homes");
}

absl::StatusOr<Assignments> PlainRanks(const PlannedJob& planned) {
  return AssignmentsOf(planned.job.model, planned.job.config, planned.plan, FourSamples(planned.plan));
}

absl::StatusOr<Assignments> RanksOnHost(const Assignments& plain, const StateOnHost& how) {
  Assignments ranks;
  for (const RankAssignment& rank : plain) {
    auto with = WithStateOnHost(rank, how);
    if (!with.ok()) return with.status();
    ranks.push_back(*std::move(with));
  }
  return ranks;
}

class StateOnHostTest : public testing::TestWithParam<Devices> {
 protected:
  StateOnHostTest() {
    WriteTinyText(folder_);
    WriteTinyRows(folder_);
  }
  ~StateOnHostTest() override { std::filesystem::remove_all(folder_); }

  // False: the plan has no such programs.
  bool ExpectSameBits(PlannedJob planned, const StateOnHost& how) {
    planned.job.config.training.steps = kStateSteps;
    if (how.in_turn) planned.job.config.training.max_norm = 0;
    if (how.in_turn && planned.plan.dtype == DType::kFloat16) return false;
    const auto plain = PlainRanks(planned);
    EXPECT_TRUE(plain.ok()) << plain.status();
    const auto on_host = RanksOnHost(*plain, how);
    if (!on_host.ok()) return false;
    const auto expected = TrainOnThreads(*plain, std::nullopt, GetParam()),
               run = TrainOnThreads(*on_host, kStateSeed, GetParam());
    const std::string where = absl::StrCat(ToText(how), "\n", ToText(planned));
    EXPECT_TRUE(expected.ok() && run.ok()) << expected.status() << run.status() << where;
    if (!expected.ok() || !run.ok()) return true;
    EXPECT_EQ(run->steps.size(), static_cast<size_t>(kStateSteps));
    for (size_t i = 0; i < run->steps.size() && i < expected->steps.size(); ++i) {
      EXPECT_EQ(run->steps[i].loss, expected->steps[i].loss) << "step " << i << " " << where;
      EXPECT_PRED2(IsSame, run->steps[i].grad_norm, expected->steps[i].grad_norm) << "step " << i << " " << where;
      EXPECT_EQ(run->steps[i].validation_loss, expected->steps[i].validation_loss) << "step " << i << " " << where;
    }
    EXPECT_TRUE(run->states == expected->states) << where;
    return true;
  }

  // Each way with so many plans.
  void Check(DrawJob draw, int plans, bool half = false) {
    int64_t n = 0;
    for (const StateOnHost& how : kWays) {
      int checked = 0;
      for (const int64_t end = n + 20 * plans; checked < plans && n < end; ++n) {
        checked += ExpectSameBits(draw(kStateSeed, n, folder_, half), how);
      }
      EXPECT_EQ(checked, plans) << ToText(how);
    }
  }

  const std::filesystem::path folder_ = std::filesystem::path(testing::TempDir()) / absl::StrCat("state_on_host_test-", getpid());
};

TEST_P(StateOnHostTest, RandomPlans) { Check(DrawPlannedJob, GetParam() == Devices::kHosts ? 2 : 1); }
TEST_P(StateOnHostTest, TensorParallelPlans) { Check(DrawTensorParallelJob, 1); }
TEST_P(StateOnHostTest, HalfTypes) { Check(DrawPlannedJob, 1, /*half=*/true); }

INSTANTIATE_TEST_SUITE_P(Plans, StateOnHostTest, testing::Values(Devices::kHosts, Devices::kCards),
                         [](const testing::TestParamInfo<Devices>& info) {
                           return info.param == Devices::kHosts ? "Hosts" : "Cards";
                         });

// A job goes on from a checkpoint with other kinds, and is the same to the bit.
TEST_F(StateOnHostTest, CheckpointsKnowNoTiers) {
  for (const DType dtype : {DType::kFloat64, DType::kBFloat16}) {
    TinyJob job = MakeTinyJob(ModelFamily::kLlama, kTinySizes[0], dtype, folder_);
    job.config.training.steps = std::size(kWays) + 1;
    job.config.training.max_norm = 0;
    const planner::Plan plan = OneDevicePlan(job);
    const Assignments plain = AssignmentsOf(job.model, job.config, plan, FourSamples(plan)).value();
    const auto expected = TrainOnThreads(plain);
    ASSERT_TRUE(expected.ok()) << expected.status();
    std::string resume_from;
    int64_t step = 0;
    for (const StateOnHost& how : kWays) {
      Assignments ranks = RanksOnHost(plain, how).value();
      ranks[0].start_step = step;
      ranks[0].resume_from = resume_from;
      ranks[0].config.checkpoint.folder = (folder_ / absl::StrCat(std::string(DTypeName(dtype)), step)).string();
      const auto run = TrainAndKeep(ranks, std::nullopt);
      ASSERT_TRUE(run.ok()) << run.status() << ToText(how);
      resume_from = run->folders.at(++step);
      EXPECT_EQ(run->steps.front().loss, expected->steps[static_cast<size_t>(step) - 1].loss) << ToText(how);
      EXPECT_TRUE(ReadState(resume_from).value() == expected->states.at(step)) << ToText(how);
      EXPECT_TRUE(ReadState(run->folders.rbegin()->second).value() == expected->states.rbegin()->second) << ToText(how);
    }
  }
}

// What is one mistake away from such a program is refused, or computes the same: no `after`, buffer or slot of a copy is the
// engine's to know.
TEST_F(StateOnHostTest, MistakesAreRefusedOrMakeNoDifference) {
  TinyJob job = MakeTinyJob(ModelFamily::kLlama, {2, 4}, DType::kFloat64, folder_);
  job.config.training.steps = 2;
  job.config.training.max_norm = 0;
  const planner::Plan plan = OneDevicePlan(job);
  const Assignments plain = AssignmentsOf(job.model, job.config, plan, FourSamples(plan)).value();
  const auto expected = TrainOnThreads(plain);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const Precision precision = PrecisionOf(job.config.training).value();
  for (const StateOnHost& how : {StateOnHost{kAllState}, StateOnHost{.kinds = kParameters.Or(kOptimizer), .in_turn = true}}) {
    Assignments ranks = RanksOnHost(plain, how).value();
    const Program right = ranks[0].program;
    int refused = 0, same = 0;
    for (const Mutant& mutant : MutantsOf(right)) {
      if (mutant.mistake == Mistake::kShiftedSample) continue;
      ranks[0].program = mutant.program;
      if (!Validate(mutant.program).ok() || !CheckSlots(ranks[0], precision, mutant.program).ok()) {
        ++refused;
        continue;
      }
      const auto run = TrainOnThreads(ranks, kStateSeed);
      ASSERT_TRUE(run.ok()) << run.status() << mutant.what;
      EXPECT_TRUE(run->states == expected->states) << ToText(how) << ": " << mutant.what << "\n" << ToText(right);
      ++same;
    }
    EXPECT_GT(refused, 100) << ToText(how);
    EXPECT_LT(same, refused) << ToText(how);
  }
}

// What waits on the host has its place there and none on the device. Gradients have buffers here as large as their homes were.
TEST_F(StateOnHostTest, StateThatWaitsIsNotOnTheDevice) {
  const TinyJob job = Widened(MakeTinyJob(ModelFamily::kLlama, kTinySizes[1], DType::kBFloat16, folder_));
  planner::Plan plan = OneDevicePlan(job);
  plan.pipelines[0].stages[0].zero_stage = 3;
  const Assignments plain = AssignmentsOf(job.model, job.config, plan, FourSamples(plan)).value();
  const int64_t without = TrainAndKeep(plain, std::nullopt).value().peak_bytes[0];
  int64_t elements = 0;
  for (int32_t unit = 0; unit < plain[0].ownership.num_blocks(); ++unit) elements += plain[0].ownership.NumElements(unit);
  for (const auto& [kinds, bytes] :
       {std::pair{kOptimizer, 8}, std::pair{kParameters, 4}, std::pair{kGradients, 0}, std::pair{kAllState, 12}}) {
    const Assignments ranks = RanksOnHost(plain, {kinds}).value();
    const auto run = TrainAndKeep(ranks, std::nullopt);
    ASSERT_TRUE(run.ok()) << run.status();
    const int64_t slots = ranks[0].program.slots[0] + ranks[0].program.slots[1];
    EXPECT_EQ(without - run->peak_bytes[0] + slots, elements * bytes) << InWords(kinds);
    EXPECT_EQ(run->steps[0].host_memory_bytes, ranks[0].planned_host_bytes);
    const int64_t on_host = bytes + (kinds.gradients ? 4 : 0) + (kinds.parameters ? 2 : 0);
    EXPECT_GE(ranks[0].planned_host_bytes, elements * on_host);
    EXPECT_LT(ranks[0].planned_host_bytes, elements * on_host + kHostSlotAlignment * ranks[0].program.num_units);
  }
}

}  // namespace
}  // namespace motley::engine
