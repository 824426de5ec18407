// Every program that is one mistake away from a lowered one is refused before it runs, or comes out elsewhere, or computes the
// same.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>

#include "planner/graph/program_walk.h"
#include "tests/worker/engine/equivalence/equivalence.h"
#include "tests/worker/engine/equivalence/plan_assignments.h"
#include "tests/worker/engine/equivalence/program_mutants.h"
#include "worker/engine/check_slots.h"

namespace motley::engine {
namespace {

enum class Verdict { kRefusedByValidate, kRefusedByCheckOrder, kOtherNumbers, kSameNumbers };

constexpr int kOffloading = 4;  // the plan's number

class PlantedDefectsTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { WriteTinyText(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Small ones of several ranks: tied embeddings on two stages, others on several, one stage that gathers in turn, one whose
  // layers' inputs wait in host memory.
  PlannedJob PlanNumber(int number) {
    for (int n = 100 * number;; ++n) {
      PlannedJob planned = DrawPlannedJob(21, n, folder_);
      const std::vector<planner::StagePlan>& stages = planned.plan.pipelines[0].stages;
      size_t ranks = 0;
      for (const planner::StagePlan& stage : stages) ranks += stage.units.size();
      if (ranks < 3 || ranks > 6 || planned.job.model.num_layers > 3 || planned.plan.dtype != DType::kFloat64) continue;
      if (number == 3 && stages[0].zero_stage != 3) continue;
      if (number == kOffloading) {
        // Where sums are in turn, one more or less gives the same.
        const auto sums_in_turn = [](const planner::StagePlan& stage) { return stage.zero_stage == 3; };
        if (stages.size() == 1 || std::any_of(stages.begin(), stages.end(), sums_in_turn)) continue;
        PlannedJob offloading = Offloading(planned);
        if (CopiesOf(offloading) >= 6) return offloading;
        continue;
      }
      if (planned.job.model.tie_embeddings == (number % 2 == 0) && (stages.size() == 1) == (number == 3)) return planned;
    }
  }

  static int64_t CopiesOf(const PlannedJob& planned) {
    const auto ranks = AssignmentsOf(planned.job.model, planned.job.config, planned.plan, FourSamples(planned.plan));
    int64_t copies = 0;
    for (size_t r = 0; ranks.ok() && r < ranks->size(); ++r) {
      const std::vector<Instruction>& all = (*ranks)[r].program.instructions;
      copies += std::count_if(all.begin(), all.end(), [](const Instruction& i) { return LaneOf(i.op) == Lane::kCopy; });
    }
    return copies;
  }

  Verdict VerdictOf(const PlannedJob& planned, std::vector<RankAssignment> assignments, const std::vector<Program>& programs) {
    for (const Program& program : programs) {
      if (!Validate(program).ok()) return Verdict::kRefusedByValidate;
    }
    const Precision precision = *PrecisionOf(planned.job.config.training);
    for (size_t r = 0; r < programs.size(); ++r) {
      if (!CheckSlots(assignments[r], precision, programs[r]).ok()) return Verdict::kRefusedByValidate;
    }
    if (!planner::CheckOrder(programs).ok()) return Verdict::kRefusedByCheckOrder;
    for (size_t r = 0; r < programs.size(); ++r) assignments[r].program = programs[r];
    const absl::StatusOr<TrainingRun> run = TrainOnThreads(assignments, /*delays=*/5);
    const absl::StatusOr<TrainingRun> expected = equivalence_.OneDevice(planned.job);
    EXPECT_TRUE(expected.ok()) << expected.status();
    if (!run.ok() || !expected.ok()) return Verdict::kOtherNumbers;
    const std::string complaint = Complaint(Compare(*run, *expected, planned.job.model), LimitsOf(planned.plan.dtype));
    return complaint.empty() ? Verdict::kSameNumbers : Verdict::kOtherNumbers;
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("planted_defects_test-" + std::to_string(getpid()));
  Equivalence equivalence_;
};

TEST_P(PlantedDefectsTest, AreNoticed) {
  const PlannedJob planned = PlanNumber(GetParam());
  const auto assignments = AssignmentsOf(planned.job.model, planned.job.config, planned.plan, FourSamples(planned.plan));
  ASSERT_TRUE(assignments.ok()) << assignments.status();
  std::vector<Program> programs;
  for (const RankAssignment& assignment : *assignments) programs.push_back(assignment.program);
  ASSERT_EQ(VerdictOf(planned, *assignments, programs), Verdict::kSameNumbers);

  std::map<std::pair<Mistake, Verdict>, int> seen;
  for (size_t r = 0; r < programs.size(); ++r) {
    for (const Mutant& mutant : MutantsOf(programs[r])) {
      std::vector<Program> wrong = programs;
      wrong[r] = mutant.program;
      const Verdict verdict = VerdictOf(planned, *assignments, wrong);
      ++seen[{mutant.mistake, verdict}];
      // What passes the checks is another way to the same numbers, unless it takes other samples: only the data knows.
      const Verdict passed = mutant.mistake == Mistake::kShiftedSample ? Verdict::kOtherNumbers : Verdict::kSameNumbers;
      EXPECT_TRUE(verdict == Verdict::kRefusedByValidate || verdict == Verdict::kRefusedByCheckOrder || verdict == passed)
          << "rank " << r << ", " << mutant.what << "\n"
          << ToText(planned) << "\n"
          << ToText(programs[r]);
      // Nothing is written that is not needed: for the numbers, or to bound the rooms of what is received or
      // leaves (docs/inside/program.md).
      const auto has = [&](const char* part) { return mutant.what.find(part) != std::string::npos; };
      // Of what comes back the writer makes it simple: it waits for the newest backward, whether that used the slot or not.
      const bool of_copies = GetParam() == kOffloading && (has(" forward: ") || has(" prefetch_activation: "));
      const bool bounds_rooms = has(" receive_") || of_copies;
      EXPECT_TRUE(verdict != passed || mutant.mistake != Mistake::kDroppedAfter || bounds_rooms)
          << "rank " << r << ", " << mutant.what;
      // An input may come back into any slot that is free.
      EXPECT_TRUE(verdict != passed || mutant.mistake != Mistake::kChangedField || has("slot"))
          << "rank " << r << ", " << mutant.what;
    }
  }
  for (const Mistake mistake : {Mistake::kDroppedAfter, Mistake::kChangedField, Mistake::kSwapped, Mistake::kDropped}) {
    EXPECT_GT((seen[{mistake, Verdict::kRefusedByValidate}]), 10);
  }
  EXPECT_GT((seen[{Mistake::kChangedField, Verdict::kRefusedByCheckOrder}]), 0);
  // Neighbours know which samples they hand over; a stage alone does not.
  const bool alone = planned.plan.pipelines[0].stages.size() == 1;
  EXPECT_EQ((seen[{Mistake::kShiftedSample, Verdict::kOtherNumbers}]) > 0, alone);
}

// Copies of state, as the planner writes them for several ranks: at the end of the step, or in turn.
class PlantedCopiesTest : public PlantedDefectsTest {
 protected:
  PlannedJob PlanOf(bool in_turn) {
    for (int64_t n = 0;; ++n) {
      PlannedJob planned = DrawOffloading<DrawPlannedJob>(21, n, folder_, /*half=*/false);
      const std::vector<std::string> words = OffloadWords(planned.plan);
      const auto has = [&](const char* word) { return std::find(words.begin(), words.end(), word) != words.end(); };
      size_t ranks = 0;
      for (const planner::StagePlan& stage : planned.plan.pipelines[0].stages) ranks += stage.units.size();
      if (ranks < 2 || ranks > 4 || planned.job.model.num_layers > 3 || planned.plan.dtype != DType::kFloat64) continue;
      if (has("parameters") && has("optimizer") && has(in_turn ? "in turn" : "gradients")) return planned;
    }
  }
};

TEST_P(PlantedCopiesTest, AreNoticedOrMakeNoDifference) {
  const PlannedJob planned = PlanOf(GetParam() == 1);
  const auto assignments = AssignmentsOf(planned.job.model, planned.job.config, planned.plan, FourSamples(planned.plan));
  ASSERT_TRUE(assignments.ok()) << assignments.status();
  std::vector<Program> programs;
  for (const RankAssignment& assignment : *assignments) programs.push_back(assignment.program);
  ASSERT_EQ(VerdictOf(planned, *assignments, programs), Verdict::kSameNumbers) << ToText(planned);
  std::map<std::pair<Mistake, Verdict>, int> seen;
  for (size_t r = 0; r < programs.size(); ++r) {
    for (const Mutant& mutant : MutantsOf(programs[r])) {
      if (!mutant.of_copy) continue;
      std::vector<Program> wrong = programs;
      wrong[r] = mutant.program;
      const Verdict verdict = VerdictOf(planned, *assignments, wrong);
      ++seen[{mutant.mistake, verdict}];
      EXPECT_NE(verdict, Verdict::kOtherNumbers) << "rank " << r << ", " << mutant.what << "\n"
                                                 << ToText(planned) << "\n"
                                                 << ToText(programs[r]);
    }
  }
  for (const Mistake mistake : {Mistake::kDroppedAfter, Mistake::kChangedField, Mistake::kSwapped, Mistake::kDropped}) {
    const int refused = seen[{mistake, Verdict::kRefusedByValidate}] + seen[{mistake, Verdict::kRefusedByCheckOrder}];
    const int same = seen[{mistake, Verdict::kSameNumbers}];
    EXPECT_GT(refused, same) << static_cast<int>(mistake);
    std::printf("mistake %d: %d refused, %d the same\n", static_cast<int>(mistake), refused, same);
  }
}

INSTANTIATE_TEST_SUITE_P(Plans, PlantedCopiesTest, testing::Range(0, 2));

TEST_P(PlantedDefectsTest, AreNoticedWhereAllRanksAgreeOnThem) {
  const PlannedJob planned = PlanNumber(GetParam());
  const auto assignments = AssignmentsOf(planned.job.model, planned.job.config, planned.plan, FourSamples(planned.plan));
  ASSERT_TRUE(assignments.ok()) << assignments.status();
  std::vector<Program> programs;
  for (const RankAssignment& assignment : *assignments) programs.push_back(assignment.program);
  for (const AgreedMutant& mutant : AgreedMutantsOf(programs)) {
    EXPECT_NE(VerdictOf(planned, *assignments, mutant.programs), Verdict::kSameNumbers) << mutant.what << "\n" << ToText(planned);
  }
}

INSTANTIATE_TEST_SUITE_P(Plans, PlantedDefectsTest, testing::Range(0, 5));

}  // namespace
}  // namespace motley::engine
