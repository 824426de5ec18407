#include "planner/graph/program_walk.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/planner/lowering/lowering_fixture.h"
#include "tests/planner/scheduled.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;

std::vector<Program> Programs() {
  const auto setting = MakeSetting(Nodes({{"T4", "T4"}}), WorkOf(MediumModel(4, true), 4));
  auto programs =
      ScheduleAndLower(*setting, PlanOf(*setting, ScheduleFamily::kLayered, {{{StageOf(*setting, 0, {{2}, {2}}, {{0, 3}})}}}));
  EXPECT_TRUE(programs.ok()) << programs.status();
  return *std::move(programs);
}

// Two stages of one rank, a microbatch each.
std::vector<Program> Pipeline() {
  const auto setting = MakeSetting(Nodes({{"T4", "T4"}}), WorkOf(MediumModel(4, false), 4));
  auto programs = ScheduleAndLower(
      *setting, PlanOf(*setting, ScheduleFamily::kGPipe,
                       {{{StageOf(*setting, 0, {{2, 2}}, {{0, 1}}), StageOf(*setting, 1, {{2, 2}}, {{2, 3}})}}}));
  EXPECT_TRUE(programs.ok()) << programs.status();
  return *std::move(programs);
}

template <typename Op>
int IndexOf(const Program& program, int nth = 0) {
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    if (std::holds_alternative<Op>(program.instructions[i].op) && nth-- == 0) return static_cast<int>(i);
  }
  return -1;
}

TEST(ProgramWalkTest, HandOversMustMatch) {
  std::vector<Program> programs = Pipeline();
  ASSERT_EQ(CheckOrder(programs), absl::OkStatus());
  std::get<ReceiveActivation>(programs[1].instructions[IndexOf<ReceiveActivation>(programs[1])].op).first = 1;
  EXPECT_THAT(std::string(CheckOrder(programs).message()),
              testing::AllOf(HasSubstr("hand-overs do not match: rank 0 is at "), HasSubstr("samples 0 to 2 peer 1"),
                             HasSubstr("rank 1 at "), HasSubstr("samples 1 to 3 peer 0")));
}

TEST(ProgramWalkTest, AMissingReceiveStopsItsSender) {
  std::vector<Program> programs = Pipeline();
  // The second microbatch's gradient is never received.
  Program& first = programs[0];
  const int receive = IndexOf<ReceiveGradient>(first, 1);
  for (Instruction& instruction : first.instructions) std::erase(instruction.after, receive);
  first.instructions[receive] = {Release{0}, {}};
  EXPECT_THAT(std::string(CheckOrder(programs).message()),
              testing::AllOf(HasSubstr("the programs deadlock"), HasSubstr("rank 1 is stuck at "), HasSubstr("send_gradient")));
}

TEST(ProgramWalkTest, AllRanksKnowTheSameGroups) {
  std::vector<Program> programs = Pipeline();
  programs[1].groups.pop_back();
  EXPECT_THAT(std::string(CheckOrder(programs).message()), HasSubstr("other groups than rank 0's"));
}

TEST(ProgramWalkTest, LoweredProgramsComeToTheirEnd) { EXPECT_EQ(CheckOrder(Programs()), absl::OkStatus()); }

TEST(ProgramWalkTest, CollectivesMustMatch) {
  std::vector<Program> programs = Programs();
  std::get<Gather>(programs[1].instructions[1].op).unit = 2;
  EXPECT_EQ(std::string(CheckOrder(programs).message()),
            "collectives do not match: rank 1 is at instruction 1 (gather unit 2), rank 0 at instruction 1 (gather unit 1)");
}

TEST(ProgramWalkTest, AMissingCollectiveStopsAllThatComesAfterIt) {
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

TEST(ProgramWalkTest, AnInstructionThatWaitsForALaterOneIsStuck) {
  std::vector<Program> programs = Programs();
  const auto last = static_cast<int32_t>(programs[1].instructions.size()) - 1;
  programs[1].instructions[0].after = {last};
  EXPECT_THAT(std::string(CheckOrder(programs).message()),
              HasSubstr(absl::StrCat("rank 1 is stuck at instruction 0 (gather unit 0) waiting for instruction ", last)));
}

TEST(ProgramWalkTest, NoProgramsAreNoStep) { EXPECT_THAT(CheckOrder({}).message(), HasSubstr("at least one rank")); }

}  // namespace
}  // namespace motley::planner
