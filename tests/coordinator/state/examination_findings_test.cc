// What an examination says of nodes beside what they answered: that it was told of them, and what does not fit together.
#include "coordinator/state/examination_findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/coordinator/state/examination_fixture.h"

namespace motley::coordinator {
namespace {

using ::testing::HasSubstr;

TEST_F(ExaminationTest, BytesThatMayLeaveByAnotherCardAreAWarning) {
  for (const char* name : {"a", "b", "c"}) AddNode(name);
  Begin();
  const std::string check_id = SentTo<ReachCheckCommand>("a")->check_id;
  const std::string why = "by that one it was not reached";
  EXPECT_TRUE(FileReach(NodeName("a"),
                        {check_id, {{NodeName("b"), "", 0.001, 0, why}, {NodeName("c"), "", 0.001, 0, "cannot be held"}}}, e_));
  EXPECT_TRUE(FileReach(NodeName("b"), {check_id, {{NodeName("a"), "", 0.001}, {NodeName("c"), "", 0.001}}}, e_));
  EXPECT_TRUE(FileReach(NodeName("c"), {check_id, {{NodeName("a"), "", 0.001}, {NodeName("b"), "", 0.001}}}, e_));
  Step();
  AnswerAll();
  EXPECT_EQ(Text(FindingState::kWrong), "");
  const std::string text = Text(FindingState::kWarning);
  EXPECT_THAT(text,
              HasSubstr("card of a: what it sends to b, c may leave by another card than that of its data address 10.0.0.a: " +
                        why + "; give each card a subnet of its own"));
  EXPECT_EQ(text.find("card of b"), std::string::npos) << text;
}

TEST_F(ExaminationTest, AHostThatIsTooSlowForItsEmulation) {
  AddNode("a");
  Begin();
  JobRecord job;
  job.id = JobId("j");
  job.epoch = Epoch(2);
  job.last_step.epoch = Epoch(2);
  job.last_step.step_seconds = 36;
  job.last_step.lateness_seconds = 31.3;
  state_.jobs[job.id] = job;
  EXPECT_THAT(Text(FindingState::kWarning), ::testing::Not(HasSubstr("emulation"))) << "no job runs";
  state_.run.emplace().job = job.id;
  EXPECT_THAT(Text(FindingState::kWarning), HasSubstr("host: in job j it is too slow for the emulation: "));
  state_.jobs[job.id].epoch = Epoch(3);
  EXPECT_THAT(Text(FindingState::kWarning), ::testing::Not(HasSubstr("emulation"))) << "another plan made that step";
}

TEST_F(ExaminationTest, NodesThatAreNotReadyAndWorkersThatWereRefused) {
  for (const char* name : {"a", "b", "c"}) AddNode(name);
  state_.nodes.at(NodeName("a")).drained = true;
  state_.nodes.at(NodeName("b")).held = true;
  state_.nodes.at(NodeName("b")).reason = "it comes and goes";
  state_.refused_workers["d"] = {"worker d has version '0'", clock_.Now()};
  state_.refused_workers["e"] = {"long ago", clock_.Now() - absl::Hours(1)};
  Begin();
  AnswerAll();
  EXPECT_THAT(Text(FindingState::kWarning), HasSubstr("`motley nodes undrain a`"));
  EXPECT_THAT(Text(FindingState::kWarning), HasSubstr("it comes and goes"));
  EXPECT_THAT(Text(FindingState::kWrong), HasSubstr("worker d: refused 0 s ago: worker d has version '0'"));
  EXPECT_EQ(Found(FindingState::kWrong).size(), 1u);
}

TEST_F(ExaminationTest, ANodeThatOffersNoneOfItsCardsIsANote) {
  for (const char* name : {"a", "b", "c"}) AddNode(name);
  state_.nodes.at(NodeName("a")).description.unused_cards = {{"NVIDIA cards", "the library cannot be opened"}, {"x", "y"}};
  state_.nodes.at(NodeName("b")).description.unused_cards = {{"NVIDIA T4", "is full"}};
  state_.nodes.at(NodeName("b")).description.devices[0].kind = DeviceKind::kCuda;
  Begin();
  AnswerAll();
  ASSERT_EQ(Found(FindingState::kWarning).size(), 1u);
  EXPECT_EQ(Text(FindingState::kWarning),
            "cards of a: it offers none of them: NVIDIA cards: the library cannot be opened; and 1 more card\n");
}

TEST_F(ExaminationTest, ANodeWhoseKernelDoesNotHoldItsRanksIsANote) {
  for (const char* name : {"a", "b", "c"}) AddNode(name);
  state_.nodes.at(NodeName("b")).description.files_not_held = "the kernel has no Landlock";
  Begin();
  AnswerAll();
  EXPECT_EQ(
      Text(FindingState::kWarning),
      "files of b: the kernel does not hold ranks to [files] roots: the kernel has no Landlock; let nobody but the worker's "
      "user write there\n");
}

TEST_F(ExaminationTest, WorkersOfDifferentUsersAreANote) {
  for (const char* name : {"a", "b", "c"}) {
    AddNode(name);
    state_.nodes.at(NodeName(name)).description.user = "872:871";
  }
  Begin();
  AnswerAll();
  EXPECT_EQ(Text(FindingState::kWarning), "");
  state_.nodes.at(NodeName("c")).description.user = "990:871";
  Begin();
  AnswerAll();
  EXPECT_EQ(
      Text(FindingState::kWarning),
      "users: workers run under different numbers of user and group: 872:871 on a and 1 more node; 990:871 on c. In a shared "
      "folder one may not replace what another wrote; give motley-worker the same numbers on all machines "
      "(docs/use/two-machines.md)\n");
}

// Whether it is ready for the loss of the coordinator's machine, where somebody has begun to make it so.
TEST_F(ExaminationTest, WhatStandsInTheWayOfATakeOverIsSaid) {
  for (const char* name : {"a", "b"}) {
    AddNode(name);
    state_.members[NodeName(name)].coordinators = {"10.0.0.1:7073"};
  }
  Begin();
  AnswerAll();
  EXPECT_EQ(Text(FindingState::kWarning), "") << "nobody asked for it";
  state_.members[NodeName("b")].coordinators.push_back("10.0.0.2:7073");
  state_.backup_problem = "cannot look at /mnt/elsewhere";
  state_.rival = "another coordinator of the same number runs at 10.0.0.2:7073";
  Begin();
  AnswerAll();
  EXPECT_EQ(Text(FindingState::kWarning),
            "node a: its worker.coordinator names 10.0.0.1:7073 alone, others name several: it stays away when another machine "
            "takes over\n");
  EXPECT_EQ(Text(FindingState::kWrong),
            "coordinators: another coordinator of the same number runs at 10.0.0.2:7073\nbackups: the store is not backed up: "
            "cannot look at /mnt/elsewhere\n");
}

TEST_F(ExaminationTest, AClockThatIsOffIsANote) {
  for (const char* name : {"a", "b"}) AddNode(name);
  state_.nodes.at(NodeName("a")).clock.Add(1'000'000, 1'000'020);
  state_.nodes.at(NodeName("b")).clock.Add(1'003'000, 1'000'000);
  Begin();
  AnswerAll();
  EXPECT_THAT(Text(FindingState::kWarning), HasSubstr("clock of b: 3.0 s ahead of the coordinator's (+- 0.00 s)"));
  EXPECT_THAT(Text(FindingState::kOk), HasSubstr("clocks: of 1 node: within 0.03 s"));
  EXPECT_EQ(Text(FindingState::kWrong), "");
}

}  // namespace
}  // namespace motley::coordinator
