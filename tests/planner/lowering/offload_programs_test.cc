// Ranks' programs of plans whose state waits in host memory (docs/inside/offload.md), by golden strings.
#include <algorithm>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/lowering/program_writer.h"
#include "planner/plan/each_rank.h"
#include "planner/scheduling/make_schedule.h"
#include "tests/planner/lowering/lowering_fixture.h"
#include "tests/planner/lowering/ranks_programs.h"

namespace motley::planner {
namespace {

using testing::HasSubstr;

// Instructions: all, those of the passes, of them the backward, and those behind both.
std::string InstructionsOf(const Program& program) {
  const std::string text = ToText(program);
  return text.substr(text.find("\n0 ") + 1);
}
std::string PassesOf(const Program& program) {
  const std::string text = InstructionsOf(program);
  return text.substr(0, text.rfind('\n', text.find(" reduce_scalars")) + 1);
}
std::string BackwardOf(const Program& program) {
  const std::string text = PassesOf(program);
  return text.substr(text.rfind('\n', text.find(" backward ")) + 1);
}
std::string EndOf(const Program& program) { return InstructionsOf(program).substr(PassesOf(program).size()); }
size_t BuffersInTurn(const std::vector<UnitBuffer>& buffers) {
  return static_cast<size_t>(
      std::count_if(buffers.begin(), buffers.end(), [](const UnitBuffer& buffer) { return buffer.home_of < 0; }));
}

class OffloadProgramsTest : public testing::Test {
 protected:
  // Units 0 embedding, 1 to 3 layers, 4 head; a ministage a layer. One rank with two microbatches of two, or two with one each.
  Program RankAlone(const OffloadKinds& offload, OptimizerSteps steps = OptimizerSteps::kAtEnd, bool tied = false) {
    return Lowered({{{2, 2}}}, 2, offload, steps, tied);
  }
  Program OneOfTwo(const OffloadKinds& offload, OptimizerSteps steps = OptimizerSteps::kAtEnd, bool tied = false) {
    return Lowered({{2}, {2}}, 3, offload, steps, tied);
  }
  const Setting& setting() const { return *setting_; }

 private:
  Program Lowered(const std::vector<std::vector<int64_t>>& microbatches, int zero_stage, const OffloadKinds& offload,
                  OptimizerSteps steps, bool tied) {
    setting_ = MakeSetting(Nodes({std::vector<std::string>(microbatches.size(), "T4")}), WorkOf(MediumModel(3, tied), 4));
    Plan plan = PlanOf(*setting_, ScheduleFamily::kLayered,
                       {{{StageOf(*setting_, 0, microbatches, {{0, 0}, {1, 1}, {2, 2}}, zero_stage)}}});
    ForEachRank(plan, [&](RankPlan& rank) { rank.offload = offload; });
    plan.optimizer_steps = steps;
    const std::vector<Program> programs = RanksProgramsOf(*setting_, plan);
    return programs.empty() ? Program() : programs[0];
  }

  std::unique_ptr<Setting> setting_;
};

TEST_F(OffloadProgramsTest, ParametersComeForAMinistageAndOneUnitMore) {
  const Program program = RankAlone({.parameters = true});
  EXPECT_EQ(program.parameter_buffers.size(), 3u) << "two of the first or the last ministage, and the next one's";
  EXPECT_EQ(BuffersInTurn(program.parameter_buffers), 3u) << "no home";
  EXPECT_EQ(BuffersInTurn(program.gradient_buffers), 0u) << "gradients stay";
  EXPECT_EQ(program.slots.size(), 2u);
  EXPECT_EQ(PassesOf(program),
            "0 prefetch_parameters block=0 buffer=0\n"
            "1 gather block=0 buffer=0 group=0 after=0\n"
            "2 prefetch_parameters block=1 buffer=1\n"
            "3 gather block=1 buffer=1 group=0 after=2\n"
            "4 prefetch_parameters block=2 buffer=2\n"
            "5 gather block=2 buffer=2 group=0 after=4\n"
            "6 forward block=0 mb=0 buffer=0 keep=all after=1\n"
            "7 forward block=1 mb=0 buffer=1 keep=all after=3\n"
            "8 forward block=0 mb=1 buffer=0 keep=all\n"
            "9 release buffer=0\n"
            "10 prefetch_parameters block=3 buffer=0 after=9\n"
            "11 gather block=3 buffer=0 group=0 after=9,10\n"
            "12 forward block=1 mb=1 buffer=1 keep=all\n"
            "13 release buffer=1\n"
            "14 prefetch_parameters block=4 buffer=1 after=13\n"
            "15 gather block=4 buffer=1 group=0 after=13,14\n"
            "16 forward block=2 mb=0 buffer=2 keep=all after=5\n"
            "17 forward block=2 mb=1 buffer=2 keep=all\n"
            "18 forward block=3 mb=0 buffer=0 keep=all after=11\n"
            "19 forward block=4 mb=0 buffer=1 keep=all after=15\n"
            "20 forward block=3 mb=1 buffer=0 keep=all\n"
            "21 forward block=4 mb=1 buffer=1 keep=all\n"
            "22 backward block=4 mb=0 buffer=1 grad=4\n"
            "23 backward block=3 mb=0 buffer=0 grad=3\n"
            "24 backward block=4 mb=1 buffer=1 grad=4\n"
            "25 release buffer=1\n"
            "26 prefetch_parameters block=1 buffer=1 after=25\n"
            "27 gather block=1 buffer=1 group=0 after=25,26\n"
            "28 reduce_scatter block=4 grad=4 group=0\n"
            "29 backward block=3 mb=1 buffer=0 grad=3\n"
            "30 release buffer=0\n"
            "31 prefetch_parameters block=0 buffer=0 after=30\n"
            "32 gather block=0 buffer=0 group=0 after=30,31\n"
            "33 reduce_scatter block=3 grad=3 group=0\n"
            "34 backward block=2 mb=0 buffer=2 grad=2\n"
            "35 backward block=2 mb=1 buffer=2 grad=2\n"
            "36 release buffer=2\n"
            "37 reduce_scatter block=2 grad=2 group=0 after=35\n"
            "38 backward block=1 mb=0 buffer=1 grad=1 after=27\n"
            "39 backward block=0 mb=0 buffer=0 grad=0 after=32\n"
            "40 backward block=1 mb=1 buffer=1 grad=1\n"
            "41 release buffer=1\n"
            "42 reduce_scatter block=1 grad=1 group=0 after=40\n"
            "43 backward block=0 mb=1 buffer=0 grad=0\n"
            "44 release buffer=0\n"
            "45 reduce_scatter block=0 grad=0 group=0 after=43\n");
}

TEST_F(OffloadProgramsTest, WithZero3ParametersComeBlockByBlock) {
  const Program program = OneOfTwo({.parameters = true});
  EXPECT_EQ(BuffersInTurn(program.parameter_buffers), 2u);
  EXPECT_EQ(PassesOf(program),
            "0 prefetch_parameters block=0 buffer=0\n"
            "1 gather block=0 buffer=0 group=0 after=0\n"
            "2 prefetch_parameters block=1 buffer=1\n"
            "3 gather block=1 buffer=1 group=0 after=2\n"
            "4 forward block=0 mb=0 buffer=0 keep=all after=1\n"
            "5 release buffer=0\n"
            "6 prefetch_parameters block=2 buffer=0 after=5\n"
            "7 gather block=2 buffer=0 group=0 after=5,6\n"
            "8 forward block=1 mb=0 buffer=1 keep=all after=3\n"
            "9 release buffer=1\n"
            "10 prefetch_parameters block=3 buffer=1 after=9\n"
            "11 gather block=3 buffer=1 group=0 after=9,10\n"
            "12 forward block=2 mb=0 buffer=0 keep=all after=7\n"
            "13 release buffer=0\n"
            "14 prefetch_parameters block=4 buffer=0 after=13\n"
            "15 gather block=4 buffer=0 group=0 after=13,14\n"
            "16 forward block=3 mb=0 buffer=1 keep=all after=11\n"
            "17 forward block=4 mb=0 buffer=0 keep=all after=15\n"
            "18 backward block=4 mb=0 buffer=0 grad=0\n"
            "19 release buffer=0\n"
            "20 prefetch_parameters block=2 buffer=0 after=19\n"
            "21 gather block=2 buffer=0 group=0 after=19,20\n"
            "22 reduce_scatter block=4 grad=0 group=0\n"
            "23 backward block=3 mb=0 buffer=1 grad=1\n"
            "24 release buffer=1\n"
            "25 prefetch_parameters block=1 buffer=1 after=24\n"
            "26 gather block=1 buffer=1 group=0 after=24,25\n"
            "27 reduce_scatter block=3 grad=1 group=0\n"
            "28 backward block=2 mb=0 buffer=0 grad=0 after=22\n"
            "29 release buffer=0\n"
            "30 prefetch_parameters block=0 buffer=0 after=29\n"
            "31 gather block=0 buffer=0 group=0 after=29,30\n"
            "32 reduce_scatter block=2 grad=0 group=0\n"
            "33 backward block=1 mb=0 buffer=1 grad=1 after=27\n"
            "34 release buffer=1\n"
            "35 reduce_scatter block=1 grad=1 group=0 after=33\n"
            "36 backward block=0 mb=0 buffer=0 grad=0 after=32\n"
            "37 release buffer=0\n"
            "38 reduce_scatter block=0 grad=0 group=0 after=36\n");
}

TEST_F(OffloadProgramsTest, AnOptimizerComesWhileTheOneBeforeIsStepped) {
  const Program program = RankAlone({.optimizer = true});
  EXPECT_EQ(program.parameter_buffers.size(), 5u) << "homes";
  EXPECT_EQ(BuffersInTurn(program.parameter_buffers), 0u);
  EXPECT_EQ(EndOf(program),
            "30 reduce_scalars\n"
            "31 prefetch_optimizer block=0 slot=0\n"
            "32 prefetch_optimizer block=1 slot=1\n"
            "33 optimizer_step block=0 slot=0 after=30,31\n"
            "34 offload_optimizer block=0 slot=0 after=33\n"
            "35 prefetch_optimizer block=2 slot=0\n"
            "36 optimizer_step block=1 slot=1 after=32\n"
            "37 offload_optimizer block=1 slot=1 after=36\n"
            "38 prefetch_optimizer block=3 slot=1\n"
            "39 optimizer_step block=2 slot=0 after=35\n"
            "40 offload_optimizer block=2 slot=0 after=39\n"
            "41 prefetch_optimizer block=4 slot=0\n"
            "42 optimizer_step block=3 slot=1 after=38\n"
            "43 offload_optimizer block=3 slot=1 after=42\n"
            "44 optimizer_step block=4 slot=0 after=41\n"
            "45 offload_optimizer block=4 slot=0 after=44\n");
}

TEST_F(OffloadProgramsTest, SlotsOfStateStandBehindThoseOfInputs) {
  const Program program = RankAlone({.activations = true, .optimizer = true});
  ASSERT_EQ(program.slots.size(), 4u);
  const Costs& costs = setting().costs;
  EXPECT_EQ(program.slots[0], costs.BoundaryBytes(2));
  EXPECT_EQ(program.slots[1], costs.BoundaryBytes(2));
  const auto bytes = [&](UnitKind unit) {
    return costs.InHost(program.offloads, static_cast<double>(costs.UnitElements(unit))).AreaBytes();
  };
  EXPECT_EQ(program.slots[2], bytes(UnitKind::kEmbedding)) << "units 0, 2 and 4";
  EXPECT_EQ(program.slots[3], bytes(UnitKind::kLayer)) << "units 1 and 3";
}

TEST_F(OffloadProgramsTest, SumsLeaveTheirBuffers) {
  const Program program = RankAlone({.gradients = true, .optimizer = true});
  EXPECT_EQ(program.gradient_buffers.size(), 2u);
  EXPECT_EQ(BuffersInTurn(program.gradient_buffers), 2u) << "of one rank, too";
  EXPECT_EQ(BackwardOf(program),
            "15 backward block=4 mb=0 buffer=4 grad=0\n"
            "16 backward block=3 mb=0 buffer=3 grad=1\n"
            "17 backward block=4 mb=1 buffer=4 grad=0\n"
            "18 reduce_scatter block=4 grad=0 group=0 after=17\n"
            "19 offload_gradients block=4 grad=0 after=18\n"
            "20 backward block=3 mb=1 buffer=3 grad=1\n"
            "21 reduce_scatter block=3 grad=1 group=0 after=20\n"
            "22 offload_gradients block=3 grad=1 after=21\n"
            "23 backward block=2 mb=0 buffer=2 grad=0 after=19\n"
            "24 backward block=2 mb=1 buffer=2 grad=0\n"
            "25 reduce_scatter block=2 grad=0 group=0 after=24\n"
            "26 offload_gradients block=2 grad=0 after=25\n"
            "27 backward block=1 mb=0 buffer=1 grad=1 after=22\n"
            "28 backward block=0 mb=0 buffer=0 grad=0 after=26\n"
            "29 backward block=1 mb=1 buffer=1 grad=1\n"
            "30 reduce_scatter block=1 grad=1 group=0 after=29\n"
            "31 offload_gradients block=1 grad=1 after=30\n"
            "32 backward block=0 mb=1 buffer=0 grad=0\n"
            "33 reduce_scatter block=0 grad=0 group=0 after=32\n"
            "34 offload_gradients block=0 grad=0 after=33\n");
}

TEST_F(OffloadProgramsTest, SumsOfAGroupLeaveTheirBuffers) {
  const Program program = OneOfTwo(OffloadKinds{.parameters = true, .gradients = true, .optimizer = true});
  EXPECT_EQ(BackwardOf(program),
            "18 backward block=4 mb=0 buffer=0 grad=0\n"
            "19 release buffer=0\n"
            "20 prefetch_parameters block=2 buffer=0 after=19\n"
            "21 gather block=2 buffer=0 group=0 after=19,20\n"
            "22 reduce_scatter block=4 grad=0 group=0\n"
            "23 offload_gradients block=4 grad=0 after=22\n"
            "24 backward block=3 mb=0 buffer=1 grad=1\n"
            "25 release buffer=1\n"
            "26 prefetch_parameters block=1 buffer=1 after=25\n"
            "27 gather block=1 buffer=1 group=0 after=25,26\n"
            "28 reduce_scatter block=3 grad=1 group=0\n"
            "29 offload_gradients block=3 grad=1 after=28\n"
            "30 backward block=2 mb=0 buffer=0 grad=0 after=21,23\n"
            "31 release buffer=0\n"
            "32 prefetch_parameters block=0 buffer=0 after=31\n"
            "33 gather block=0 buffer=0 group=0 after=31,32\n"
            "34 reduce_scatter block=2 grad=0 group=0\n"
            "35 offload_gradients block=2 grad=0 after=34\n"
            "36 backward block=1 mb=0 buffer=1 grad=1 after=27,29\n"
            "37 release buffer=1\n"
            "38 reduce_scatter block=1 grad=1 group=0 after=36\n"
            "39 offload_gradients block=1 grad=1 after=38\n"
            "40 backward block=0 mb=0 buffer=0 grad=0 after=33,35\n"
            "41 release buffer=0\n"
            "42 reduce_scatter block=0 grad=0 group=0 after=40\n"
            "43 offload_gradients block=0 grad=0 after=42\n");
}

TEST_F(OffloadProgramsTest, ATiedTableIsSummedOnceWhereItsSumLeaves) {
  const auto sums_of_table = [](const Program& program) {
    return std::count_if(program.instructions.begin(), program.instructions.end(), [](const Instruction& instruction) {
      const auto* sum = std::get_if<ReduceScatter>(&instruction.op);
      return sum != nullptr && sum->unit == 0;
    });
  };
  EXPECT_EQ(sums_of_table(OneOfTwo({.optimizer = true}, OptimizerSteps::kAtEnd, true)), 2) << "the head's part goes early";
  EXPECT_EQ(sums_of_table(OneOfTwo({.gradients = true, .optimizer = true}, OptimizerSteps::kAtEnd, true)), 1);
  EXPECT_EQ(sums_of_table(OneOfTwo({}, OptimizerSteps::kInTurn, true)), 1);
}

TEST_F(OffloadProgramsTest, InTurnAUnitIsSteppedOutOfItsBuffer) {
  const Program program = RankAlone({.optimizer = true}, OptimizerSteps::kInTurn);
  EXPECT_EQ(EndOf(program), "45 reduce_scalars\n");
  EXPECT_EQ(BuffersInTurn(program.gradient_buffers), 2u);
  EXPECT_EQ(BackwardOf(program),
            "15 backward block=4 mb=0 buffer=4 grad=0\n"
            "16 backward block=3 mb=0 buffer=3 grad=1\n"
            "17 backward block=4 mb=1 buffer=4 grad=0\n"
            "18 prefetch_optimizer block=4 slot=0\n"
            "19 prefetch_optimizer block=3 slot=1\n"
            "20 reduce_scatter block=4 grad=0 group=0 after=17\n"
            "21 backward block=3 mb=1 buffer=3 grad=1\n"
            "22 optimizer_step block=4 slot=0 grad=0 after=18,20\n"
            "23 offload_optimizer block=4 slot=0 after=22\n"
            "24 prefetch_optimizer block=2 slot=0\n"
            "25 reduce_scatter block=3 grad=1 group=0 after=21\n"
            "26 backward block=2 mb=0 buffer=2 grad=0\n"
            "27 backward block=2 mb=1 buffer=2 grad=0\n"
            "28 optimizer_step block=3 slot=1 grad=1 after=19,25\n"
            "29 offload_optimizer block=3 slot=1 after=28\n"
            "30 prefetch_optimizer block=1 slot=1\n"
            "31 reduce_scatter block=2 grad=0 group=0 after=27\n"
            "32 backward block=1 mb=0 buffer=1 grad=1\n"
            "33 optimizer_step block=2 slot=0 grad=0 after=24,31\n"
            "34 offload_optimizer block=2 slot=0 after=33\n"
            "35 prefetch_optimizer block=0 slot=0\n"
            "36 backward block=0 mb=0 buffer=0 grad=0\n"
            "37 backward block=1 mb=1 buffer=1 grad=1\n"
            "38 reduce_scatter block=1 grad=1 group=0 after=37\n"
            "39 backward block=0 mb=1 buffer=0 grad=0\n"
            "40 optimizer_step block=1 slot=1 grad=1 after=30,38\n"
            "41 offload_optimizer block=1 slot=1 after=40\n"
            "42 reduce_scatter block=0 grad=0 group=0 after=39\n"
            "43 optimizer_step block=0 slot=0 grad=0 after=35,42\n"
            "44 offload_optimizer block=0 slot=0 after=43\n");
}

// Zorse section 3.1.1: the next ministage comes while one is used. Its bytes count both.
TEST(PublishedOffloadTest, TwoMinistagesOfParametersAreThere) {
  const auto setting = MakePublishedSetting(Nodes({{"T4"}}), WorkOf(MediumModel(6, false), 4));
  Plan plan = PlanOf(*setting, ScheduleFamily::kLayered, {{{StageOf(*setting, 0, {{2, 2}}, {{0, 1}, {2, 3}, {4, 5}}, 2)}}});
  ForEachRank(plan, [](RankPlan& rank) { rank.offload.parameters = true; });
  const std::vector<Program> programs = RanksProgramsOf(*setting, plan);
  ASSERT_EQ(programs.size(), 1u);
  EXPECT_EQ(BuffersInTurn(programs[0].parameter_buffers), 6u) << "two of an end and two layers";
}

TEST_F(OffloadProgramsTest, StepsInTurnOfAGroup) {
  EXPECT_EQ(BackwardOf(OneOfTwo({}, OptimizerSteps::kInTurn)),
            "13 backward block=4 mb=0 buffer=0 grad=0\n"
            "14 release buffer=0\n"
            "15 gather block=2 buffer=0 group=0 after=14\n"
            "16 reduce_scatter block=4 grad=0 group=0\n"
            "17 backward block=3 mb=0 buffer=1 grad=1\n"
            "18 release buffer=1\n"
            "19 gather block=1 buffer=1 group=0 after=18\n"
            "20 optimizer_step block=4 grad=0 after=16\n"
            "21 reduce_scatter block=3 grad=1 group=0\n"
            "22 backward block=2 mb=0 buffer=0 grad=0\n"
            "23 release buffer=0\n"
            "24 gather block=0 buffer=0 group=0 after=23\n"
            "25 optimizer_step block=3 grad=1 after=21\n"
            "26 reduce_scatter block=2 grad=0 group=0\n"
            "27 backward block=1 mb=0 buffer=1 grad=1\n"
            "28 release buffer=1\n"
            "29 optimizer_step block=2 grad=0 after=26\n"
            "30 reduce_scatter block=1 grad=1 group=0 after=27\n"
            "31 backward block=0 mb=0 buffer=0 grad=0\n"
            "32 release buffer=0\n"
            "33 optimizer_step block=1 grad=1 after=30\n"
            "34 reduce_scatter block=0 grad=0 group=0 after=31\n"
            "35 optimizer_step block=0 grad=0 after=34\n");
}

}  // namespace
}  // namespace motley::planner
