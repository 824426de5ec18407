// Lowering to programs. Reference for one layered stage: Cephalo section 2.2, figure 4.
#include "planner/lowering/program_writer.h"

#include <algorithm>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/graph/program_walk.h"
#include "tests/planner/lowering/lowering_fixture.h"
#include "tests/planner/scheduled.h"

namespace motley::planner {
namespace {

using testing::ElementsAre;

// One lane as text: "G0 G1 R5 S", "F0.0 B3.1", ">4.0 <4.0" (activation sent, gradient received).
std::string LaneText(const Program& program, Lane lane) {
  std::string text;
  const auto number = [](int64_t n) { return std::to_string(n); };
  for (const Instruction& i : program.instructions) {
    if (LaneOf(i.op) != lane) continue;
    if (const auto* g = std::get_if<Gather>(&i.op)) text += " G" + number(g->unit);
    if (const auto* r = std::get_if<ReduceScatter>(&i.op)) text += " R" + number(r->unit);
    if (std::holds_alternative<ReduceScalars>(i.op)) text += " S";
    if (const auto* f = std::get_if<Forward>(&i.op)) text += " F" + number(f->unit) + "." + number(f->microbatch);
    if (const auto* b = std::get_if<Backward>(&i.op)) text += " B" + number(b->unit) + "." + number(b->microbatch);
  }
  return text.empty() ? text : text.substr(1);
}

std::vector<Program> LoweredPrograms(const Setting& setting, const Plan& plan) {
  auto programs = ScheduleAndLower(setting, plan);
  EXPECT_TRUE(programs.ok()) << programs.status();
  if (!programs.ok()) return {};
  EXPECT_EQ(CheckOrder(*programs), absl::OkStatus());
  return *std::move(programs);
}

std::unique_ptr<Setting> TwoNodes(int64_t layers, bool tied, int64_t batch) {
  return MakeSetting(Nodes({{"T4", "T4"}, {"A10G", "A10G"}}), WorkOf(MediumModel(layers, tied), batch));
}

TEST(ProgramWriterTest, ALayeredStageKeepsATiedEmbeddingAndTheLastTwoUnits) {
  const auto setting = TwoNodes(2, true, 3);
  const auto programs =
      LoweredPrograms(*setting, PlanOf(*setting, ScheduleFamily::kLayered, {{{StageOf(*setting, 0, {{2, 1}, {}}, {{0, 1}})}}}));
  // Units 0 embedding, 1, 2 layers, 3 head; the head's share of the embedding's gradient right after the head.
  EXPECT_EQ(LaneText(programs[0], Lane::kCollective), "G0 G1 G2 G3 G1 R3 R0 R2 R1 R0 S");
  // A rank without samples reaches the same collectives in the same order.
  EXPECT_EQ(LaneText(programs[1], Lane::kCollective), LaneText(programs[0], Lane::kCollective));
}

TEST(ProgramWriterTest, ALayeredStageGathersAnUntiedEmbeddingAgain) {
  const auto setting = TwoNodes(2, false, 3);
  const auto programs =
      LoweredPrograms(*setting, PlanOf(*setting, ScheduleFamily::kLayered, {{{StageOf(*setting, 0, {{2}, {1}}, {{0, 1}})}}}));
  EXPECT_EQ(LaneText(programs[0], Lane::kCollective), "G0 G1 G2 G3 G1 R3 G0 R2 R1 R0 S");
}

TEST(ProgramWriterTest, TwoStagesOfOneRankRunGPipe) {
  const auto setting = TwoNodes(2, false, 4);
  const auto programs =
      LoweredPrograms(*setting, PlanOf(*setting, ScheduleFamily::kGPipe,
                                       {{{StageOf(*setting, 0, {{2, 2}}, {{0, 0}}), StageOf(*setting, 2, {{2, 2}}, {{1, 1}})}}}));
  EXPECT_EQ(LaneText(programs[0], Lane::kCompute), "F0.0 F1.0 F0.1 F1.1 B1.0 B0.0 B1.1 B0.1");
  EXPECT_EQ(LaneText(programs[1], Lane::kCompute), "F2.0 F3.0 F2.1 F3.1 B3.0 B2.0 B3.1 B2.1");
  EXPECT_THAT(programs[0].units, ElementsAre(0, 1));
  EXPECT_THAT(programs[1].units, ElementsAre(2, 3));
}

// Sums between pipelines hide behind the backwards of those that are as long. Beside a pipeline whose last backward is short, one
// with a single large microbatch would wait in the midst of its own: there they come behind all that the stage gathers and sums.
TEST(ProgramWriterTest, SumsBetweenPipelinesBehindShardsStandWhereTheStepIsShortest) {
  const auto text = [](int64_t batch, const std::vector<std::vector<int64_t>>& first,
                       const std::vector<std::vector<int64_t>>& second) {
    const auto setting = MakeSetting(Nodes({{"T4", "T4"}, {"T4", "T4"}}, 400e9, 200e9), WorkOf(MediumModel(6, false), batch));
    const Plan plan = PlanOf(*setting, ScheduleFamily::k1F1B,
                             {{{StageOf(*setting, 0, first, {{0, 5}}, 3)}}, {{StageOf(*setting, 2, second, {{0, 5}}, 3)}}});
    const auto programs = LoweredPrograms(*setting, plan);
    return programs.empty() ? "" : LaneText(programs[0], Lane::kCollective);
  };
  EXPECT_EQ(
      text(16, {{4}, {4}}, {{4}, {4}}),
      "G0 G0 G1 G1 G2 G3 G4 G5 G6 G7 G2 G3 G4 G5 G6 G7 G5 R7 R7 G4 R6 R6 G3 R5 R5 G2 R4 R4 G1 R3 R3 G0 R2 R2 R1 R1 R0 R0 S");
  EXPECT_EQ(
      text(32, {{8}, {8}}, {{1, 1, 1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1, 1, 1}}),
      "G0 G0 G1 G1 G2 G3 G4 G5 G6 G7 G2 G3 G4 G5 G6 G7 G5 R7 G4 R6 G3 R5 G2 R4 G1 R3 G0 R2 R1 R0 R7 R6 R5 R4 R3 R2 R1 R0 S");
}

// The stage's ranks keep one order; in Megatron's none of them passes on what the other stage's second microbatch takes from all.
TEST(ProgramWriterTest, InterleavedMicrobatchesThatDoNotLineUpGoMinistageByMinistage) {
  const auto setting = TwoNodes(4, false, 12);
  const std::vector<std::vector<LayerRange>> dealt = DealLayers(4, 2, 2);
  const std::vector<int64_t> ones(4, 1);
  const auto programs = LoweredPrograms(
      *setting,
      PlanOf(*setting, ScheduleFamily::kInterleaved,
             {{{StageOf(*setting, 0, {ones, ones, ones}, dealt[0], 0), StageOf(*setting, 3, {{1, 8, 1, 2}}, dealt[1], 0)}}}));
  ASSERT_EQ(programs.size(), 4u);
  const std::string forwards = "F2.0 F2.1 F2.2 F2.3 F4.0 F5.0 F4.1 F5.1 F4.2 F5.2 F4.3 F5.3 ";
  EXPECT_EQ(LaneText(programs[3], Lane::kCompute), forwards + "B5.0 B4.0 B5.1 B4.1 B5.2 B4.2 B5.3 B4.3 B2.0 B2.1 B2.2 B2.3");
}

// A random plan that the engine runs, made of one of the language.
Plan Runnable(RandomPlans* random, const Setting& setting) {
  for (;;) {
    Plan plan = random->Next(setting);
    MakeRunnable(&plan);
    plan.dtype = DType::kFloat32;
    if (ValidateForEngine(plan, setting.workload.model).ok()) return plan;
  }
}

TEST(ProgramWriterTest, RandomPlansBecomeValidProgramsThatComeToTheirEnd) {
  RandomPlans random(17);
  int stuck = 0;
  for (int i = 0; i < 2000; ++i) {
    const auto setting = random.NextSetting(i % 2 == 0);
    const Plan plan = Runnable(&random, *setting);
    const auto programs = ScheduleAndLower(*setting, plan);
    if (!programs.ok()) {
      ++stuck;
      ADD_FAILURE() << programs.status() << "\n" << ToText(plan);
      continue;
    }
    const absl::Status order = CheckOrder(*programs);
    ASSERT_TRUE(order.ok()) << order << "\n" << ToText(plan);
  }
  EXPECT_EQ(stuck, 0);
}

}  // namespace
}  // namespace motley::planner
