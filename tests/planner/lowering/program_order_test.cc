#include "planner/lowering/program_order.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/lowering/layered.h"
#include "tests/planner/cluster_fixture.h"
#include "tests/planner/hand_plan.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;

std::vector<Program> Programs() {
  const PlannerInput input = MakeInput(SmallModel(), {{"a/gpu0", "x"}, {"a/gpu1", "x"}}, 4);
  auto programs = LowerTraining(HandPlan(input, "test", {{0, 2, 2, false, 0.5}, {1, 2, 2, false, 0.5}}), input.model);
  EXPECT_TRUE(programs.ok()) << programs.status();
  return *std::move(programs);
}

TEST(ProgramOrderTest, LoweredProgramsComeToTheirEnd) { EXPECT_EQ(CheckOrder(Programs()), absl::OkStatus()); }

TEST(ProgramOrderTest, CollectivesMustMatch) {
  std::vector<Program> programs = Programs();
  std::get<Gather>(programs[1].instructions[1].op).unit = 2;
  EXPECT_EQ(std::string(CheckOrder(programs).message()),
            "collectives do not match: rank 0 is at instruction 1 (gather unit 1), rank 1 at instruction 1 (gather unit 2)");
}

TEST(ProgramOrderTest, AMissingCollectiveStopsAllThatComesAfterIt) {
  std::vector<Program> programs = Programs();
  std::vector<Instruction>& second = programs[1].instructions;
  while (!std::holds_alternative<ReduceScalars>(second.back().op)) second.pop_back();
  second.pop_back();
  const size_t last = programs[0].instructions.size() - 1;
  const auto status = CheckOrder(programs);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(std::string(status.message()),
            absl::StrCat("the programs deadlock: rank 0 is stuck at instruction ", last, " (optimizer_step) waiting for ",
                         "instruction ", last - 1, " (reduce_scalars); rank 0 is stuck at instruction ", last - 1,
                         " (reduce_scalars) waiting for the other ranks"));
}

TEST(ProgramOrderTest, AnInstructionThatWaitsForALaterOneIsStuck) {
  std::vector<Program> programs = Programs();
  const auto last = static_cast<int32_t>(programs[1].instructions.size()) - 1;
  programs[1].instructions[0].after = {last};
  EXPECT_THAT(std::string(CheckOrder(programs).message()),
              HasSubstr(absl::StrCat("rank 1 is stuck at instruction 0 (gather unit 0) waiting for instruction ", last)));
}

TEST(ProgramOrderTest, NoProgramsAreNoStep) { EXPECT_THAT(CheckOrder({}).message(), HasSubstr("at least one rank")); }

}  // namespace
}  // namespace motley::planner
