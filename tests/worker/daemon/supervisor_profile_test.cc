// The supervisor and measurements: of a job's devices, and probes beside it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/worker/daemon/supervisor_fixture.h"
#include "tests/worker/daemon/test_assignment.h"

namespace motley::worker {
namespace {

using ::testing::HasSubstr;
using Kind = RankEventKind;

ProfileCommand Measure(const std::string& behaviour, const std::string& check_id = "") {
  ProfileCommand command{JobId("job"), Epoch(1), {}, {}, check_id.empty(), check_id};
  for (int rank : {0, 1}) {
    command.ranks.push_back(TestAssignment(behaviour, 1, rank));
    command.compute_devices.push_back(command.ranks.back().device.id);
  }
  return command;
}

TEST_F(SupervisorTest, MeasuresDevicesThenCollectives) {
  supervisor_->Profile(Measure("measure"));
  const auto report = WaitForReport<ProfileReport>();
  EXPECT_EQ(report.error, "");
  EXPECT_EQ(report.compute.size(), 2u);
  EXPECT_EQ(report.collectives.points.size(), 1u);
  WaitForNoRanks();
}

TEST_F(SupervisorTest, AFailedMeasurementNamesTheDevice) {
  supervisor_->Profile(Measure("fail"));
  const auto report = WaitForReport<ProfileReport>();
  EXPECT_THAT(report.error, HasSubstr("n1/gpu"));
  EXPECT_THAT(report.error, HasSubstr("no memory"));
  WaitForNoRanks();
}

TEST_F(SupervisorTest, AProbeThatFailsChangesNothingElse) {
  for (const char* behaviour : {"fail", "exit-measuring"}) {
    supervisor_->Profile(Measure(behaviour, "probe-1"));
    std::vector<RankReport> events;
    ProfileReport answer;
    WaitFor([&](const WorkerReport& r) {
      if (const auto* event = std::get_if<RankReport>(&r)) events.push_back(*event);
      if (const auto* report = std::get_if<ProfileReport>(&r)) answer = *report;
      return !answer.check_id.empty();
    });
    EXPECT_EQ(answer.check_id, "probe-1");
    EXPECT_THAT(answer.error, HasSubstr("n1/gpu"));
    WaitForNoRanks();
    EXPECT_TRUE(events.empty()) << events[0].message;
  }
  EXPECT_TRUE(supervisor_->newest_epochs().empty());
}

TEST_F(SupervisorTest, AProbeLeavesRanksThatTrainAlone) {
  Start({TestAssignment("until-stopped", 4)});
  WaitForEvent(Kind::kReady);
  EXPECT_TRUE(supervisor_->training());
  supervisor_->Profile(Measure("measure", "probe-2"));
  const auto answer = WaitForReport<ProfileReport>();
  EXPECT_EQ(answer.check_id, "probe-2");
  EXPECT_THAT(answer.error, HasSubstr("generation 4 of job job runs here"));
  EXPECT_EQ(Ranks().size(), 1u);
  EXPECT_EQ(supervisor_->newest_epochs(), (std::vector<SeenEpoch>{{JobId("job"), Epoch(4), "", ""}}));
  Stop(4, true);
  WaitForEvent(Kind::kFinished);
}

TEST_F(SupervisorTest, AStartEndsAProbe) {
  supervisor_->Profile(Measure("silent", "probe-3"));
  supervisor_->Start({{TestAssignment("train", 1)}});
  EXPECT_EQ(WaitForEvent(Kind::kFinished).message, "all steps done");
}

ProfileCommand Trial(const std::string& behaviour, const std::string& check_id) {
  ProfileCommand command = Measure(behaviour, check_id);
  command.compute_devices.clear();
  command.ranks.erase(command.ranks.begin());
  command.ranks[0].device.memory_bytes = 1000;
  command.trial = true;
  return command;
}

// What a rank holds of its device is not there for the next trial.
TEST_F(SupervisorTest, ATrialIsAnsweredWhenItsRankIsGone) {
  supervisor_->Profile(Trial("train", "memory-1"));
  const auto ran = WaitForReport<ProfileReport>();
  EXPECT_TRUE(Ranks().empty());
  EXPECT_EQ(ran.check_id, "memory-1");
  EXPECT_EQ(ran.error, "");
  ASSERT_TRUE(ran.trial);
  EXPECT_EQ(ran.trial->samples, 3);
  EXPECT_EQ(ran.trial->peak_bytes, 500) << "what the device really has";

  supervisor_->Profile(Trial("full", "memory-2"));
  const auto full = WaitForReport<ProfileReport>();
  EXPECT_TRUE(Ranks().empty());
  EXPECT_EQ(full.fault, Fault::kMemory);
  EXPECT_THAT(full.error, HasSubstr("n1/gpu1: "));
  EXPECT_FALSE(full.trial);

  supervisor_->Profile(Trial("exit-measuring", "memory-3"));
  const auto died = WaitForReport<ProfileReport>();
  EXPECT_EQ(died.fault, Fault::kOurs);
  EXPECT_THAT(died.error, HasSubstr("exited with status 4"));
  EXPECT_TRUE(supervisor_->newest_epochs().empty()) << "no job knows of it";
}

TEST_F(SupervisorTest, ATrialThatNobodyWaitsForEnds) {
  supervisor_->Profile(Trial("silent", "memory-1"));
  ProfileCommand over{JobId("job"), Epoch(), {}, {}, false, "memory-2"};
  supervisor_->Profile(over);
  const absl::Duration deadline = clock_.Now() + Patience(absl::Seconds(20));
  while (Ranks().empty() && clock_.Now() < deadline) Pop(absl::Milliseconds(20));
  EXPECT_EQ(Ranks().size(), 1u) << "that was another's end";
  over.check_id = "memory-1";
  supervisor_->Profile(over);
  const auto answer = WaitForReport<ProfileReport>();
  EXPECT_THAT(answer.error, HasSubstr("killed: nobody waits for it"));
  WaitForNoRanks();
}

TEST_F(SupervisorTest, AJobsStartEndsATrial) {
  supervisor_->Profile(Trial("silent", "memory-1"));
  supervisor_->Start({{TestAssignment("train", 1)}});
  EXPECT_EQ(WaitForEvent(Kind::kFinished).message, "all steps done");
}

}  // namespace
}  // namespace motley::worker
