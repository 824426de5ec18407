#include "worker/daemon/supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <map>
#include <set>

#include "tests/common/base/temp_folder.h"
#include "tests/worker/daemon/supervisor_fixture.h"
#include "tests/worker/daemon/test_assignment.h"

namespace motley::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = RankEventKind;

TEST_F(SupervisorTest, TrainsToTheEnd) {
  Start({TestAssignment("train")});
  WaitForEvent(Kind::kReady);
  const auto step = WaitForReport<StepReport>();
  EXPECT_EQ(step.stats.step, 1);
  EXPECT_EQ(step.job, JobId("job"));
  EXPECT_EQ(WaitForEvent(Kind::kFinished).message, "all steps done");
  WaitForNoRanks();
  EXPECT_THAT(registry_.ToText(), HasSubstr("motley_rank_exits_total{kind=\"finished\",node=\"n1\"} 1"));
  EXPECT_THAT(registry_.ToText(), HasSubstr("motley_device_steps_total{device=\"gpu0\",node=\"n1\"} 3"));
}

// What was brought for them is needed until the last one has read it. What a job begins with is nobody's to delete.
TEST_F(SupervisorTest, WhenAllRanksAreReadyTheirFolderIsNotNeededAnyMore) {
  StartCommand command{{TestAssignment("train"), TestAssignment("train", 1, 1)}};
  for (RankAssignment& rank : command.ranks) rank.resume_from = "/weights";
  supervisor_->Start(command);
  std::set<int> ended;
  const auto all_of = [&ended](Epoch epoch) {
    return [&ended, epoch](const WorkerReport& report) {
      const auto* event = std::get_if<RankReport>(&report);
      if (event != nullptr && event->epoch == epoch && event->kind == Kind::kFinished) ended.insert(event->rank);
      return ended.size() == 2;
    };
  };
  WaitFor(all_of(Epoch(1)));
  EXPECT_THAT(Restored(), IsEmpty());
  ended.clear();
  for (RankAssignment& rank : command.ranks) rank.epoch = Epoch(2), rank.resume_from = "/local/jobs/job.1/resume/step-1-gen-1";
  command.source.name = "step-1-gen-1";
  supervisor_->Start(command);
  WaitFor(all_of(Epoch(2)));
  EXPECT_THAT(Restored(), ElementsAre("/local/jobs/job.1/resume/step-1-gen-1"));
}

TEST_F(SupervisorTest, WhatTheRankSaysOfItsEndIsTheKind) {
  Start({TestAssignment("nonfinite", 1)});
  EXPECT_THAT(WaitForEvent(Kind::kNonFinite).message, HasSubstr("layer 1"));
  Start({TestAssignment("peer", 2)});
  EXPECT_THAT(WaitForEvent(Kind::kPeerLost).message, HasSubstr("connection closed"));
  Start({TestAssignment("fail", 3)});
  EXPECT_THAT(WaitForEvent(Kind::kFailed).message, HasSubstr("matrix product"));
  WaitForNoRanks();
}

TEST_F(SupervisorTest, ARankGetsTheMemoryThatItsDeviceReallyHasAndSaysWhatItHeld) {
  std::vector<RankAssignment> ranks = {TestAssignment("full"), TestAssignment("full", 1, 1)};
  for (RankAssignment& rank : ranks) rank.device.memory_bytes = 1000;
  Start(ranks);
  std::map<int, MemoryShortage> said;  // by rank
  const auto both = [&said](const WorkerReport& r) {
    const auto* event = std::get_if<RankReport>(&r);
    if (event != nullptr && event->fault == Fault::kMemory) said[event->rank] = event->shortage.value_or(MemoryShortage());
    return said.size() == 2;
  };
  WaitFor(both);
  EXPECT_EQ(said[0], (MemoryShortage{.held_bytes = 1000, .asked_bytes = 3}));
  EXPECT_EQ(said[1], (MemoryShortage{.held_bytes = 500, .asked_bytes = 3}));
}

TEST_F(SupervisorTest, RanksShareWhatTheHostReallyHas) {
  std::vector<RankAssignment> ranks = {TestAssignment("full host"), TestAssignment("full host", 1, 1)};
  for (RankAssignment& rank : ranks) rank.planned_host_bytes = 700;
  Start(ranks);
  std::map<int, int64_t> said;  // by rank
  WaitFor([&said](const WorkerReport& r) {
    const auto* event = std::get_if<RankReport>(&r);
    if (event != nullptr && event->shortage && event->shortage->tier == MemoryTier::kHost)
      said[event->rank] = event->shortage->held_bytes;
    return said.size() == 2;
  });
  EXPECT_EQ(said[0], 1000);
  EXPECT_EQ(said[1], 300) << "beside what the other one keeps";
}

TEST_F(SupervisorTest, ARankWithFilesOutsideTheRootsIsNotStarted) {
  RankAssignment assignment = TestAssignment("train", 1);
  assignment.config.data.path = "/etc/passwd";
  Start({assignment});
  EXPECT_THAT(WaitForEvent(Kind::kFailed).message, HasSubstr("data.path: '/etc/passwd' lies beneath none"));
  assignment.epoch = Epoch(2);
  assignment.config.data.path = "/data/text";
  assignment.config.data.validation_path = "/etc/shadow";
  Start({assignment});
  EXPECT_THAT(WaitForEvent(Kind::kFailed).message, HasSubstr("data.validation_path: '/etc/shadow' lies beneath none"));
  assignment.epoch = Epoch(3);
  assignment.config.data.validation_path.clear();
  assignment.config.checkpoint.folder = "/data/../etc";
  Start({assignment});
  EXPECT_THAT(WaitForEvent(Kind::kFailed).message, HasSubstr("checkpoint.folder must not hold '..'"));
}

TEST_F(SupervisorTest, WithTooLittleHostMemoryNoRankIsStarted) {
  TempFolder machine;
  machine.Write("proc/meminfo", "MemTotal: 1048576 kB\nMemAvailable: 524288 kB\n");
  host_root_ = machine.path();
  Restart({});
  RankAssignment assignment = TestAssignment("train", 1);
  assignment.planned_host_bytes = int64_t{768} << 20;
  assignment.device.node_host_memory_bytes = int64_t{800} << 20;
  Start({assignment});
  const RankReport report = WaitForEvent(Kind::kFailed);
  EXPECT_THAT(report.message, HasSubstr("the host memory of n1 has 0.5 GiB available, and rank 0 (0.8 GiB) would keep"));
  EXPECT_EQ(report.host_offer_bytes, (int64_t{512} << 20) * 4 / 5);
  EXPECT_TRUE(Ranks().empty());
  assignment.epoch = Epoch(2);
  assignment.planned_host_bytes = int64_t{400} << 20;
  Start({assignment});
  WaitForEvent(Kind::kReady);
}

TEST_F(SupervisorTest, DeathWithoutAWordIsReportedWithItsLastOutput) {
  Start({TestAssignment("exit")});
  const auto log = WaitForReport<LogReport>();
  EXPECT_EQ(log.text, "first line");
  EXPECT_EQ(log.source, "n1/gpu0");
  const RankReport died = WaitForEvent(Kind::kDied);
  EXPECT_THAT(died.message, HasSubstr("status 3"));
  EXPECT_THAT(died.message, HasSubstr("last words"));
}

TEST_F(SupervisorTest, AKilledRankIsReportedWithItsSignal) {
  Start({TestAssignment("until-stopped")});
  WaitForReport<StepReport>();
  ASSERT_EQ(Ranks().size(), 1u);
  kill(Ranks()[0], SIGKILL);
  const RankReport died = WaitForEvent(Kind::kDied);
  EXPECT_THAT(died.message, HasSubstr("signal 9"));
  EXPECT_THAT(died.message, HasSubstr("last heard: step 2, forward")) << "what it was doing";
  EXPECT_EQ(died.device, DeviceId("n1/gpu0"));
}

TEST_F(SupervisorTest, AStoppedRankIsHungAndKilled) {
  Restart({.silence_limit = absl::Seconds(1)});
  Start({TestAssignment("until-stopped")});
  WaitForReport<StepReport>();
  ASSERT_EQ(Ranks().size(), 1u);
  kill(Ranks()[0], SIGSTOP);
  EXPECT_THAT(WaitForEvent(Kind::kHung).message, HasSubstr("n1/gpu0: no sign of life"));
  EXPECT_THAT(WaitForEvent(Kind::kDied).message, HasSubstr("because it hung"));
  WaitForNoRanks();
}

TEST_F(SupervisorTest, ARankThatIsStoppedBeforeItsFirstWordIsHung) {
  TempFolder folder;
  const std::string program = folder.Write("stops", "#!/bin/sh\nkill -STOP $$\n");
  ASSERT_EQ(chmod(program.c_str(), 0755), 0);
  Restart({.stopped_limit = absl::Milliseconds(300)}, absl::Minutes(1), program);
  RankAssignment assignment = TestAssignment("train");
  assignment.first_progress_seconds = 3600;
  Start({assignment});
  EXPECT_THAT(WaitForEvent(Kind::kHung).message, HasSubstr("its process is stopped"));
  EXPECT_THAT(WaitForEvent(Kind::kDied).message, HasSubstr("because it hung"));
  WaitForNoRanks();
}

TEST_F(SupervisorTest, ARankThatOnlyLivesIsStuck) {
  Restart({.stuck_floor = absl::Milliseconds(600)});
  RankAssignment assignment = TestAssignment("silent");
  assignment.first_progress_seconds = 0.6;
  Start({assignment});
  EXPECT_THAT(WaitForEvent(Kind::kHung).message, HasSubstr("no progress for"));
}

TEST_F(SupervisorTest, StopThatSavesLetsTheRankFinish) {
  Start({TestAssignment("until-stopped", 4)});
  WaitForEvent(Kind::kReady);
  Stop(4, true);
  EXPECT_EQ(WaitForEvent(Kind::kFinished).message, "stopped as asked");
}

TEST_F(SupervisorTest, ASaveThatTakesTooLongIsADeathAndNoOrderlyEnd) {
  Restart({}, absl::Milliseconds(100));
  RankAssignment assignment = TestAssignment("silent", 4);
  assignment.predicted_step_seconds = 0;
  Start({assignment});
  WaitForEvent(Kind::kReady);
  Stop(4, true);
  EXPECT_THAT(WaitForEvent(Kind::kDied).message, HasSubstr("did not end in time after it was told to save"));
}

TEST_F(SupervisorTest, WhatTakesLongBesideTheStepsIsSaid) {
  EXPECT_EQ(supervisor_->doing(), "");
  Start({TestAssignment("beside", 4)});
  WaitForEvent(Kind::kReady);
  while (supervisor_->doing().empty()) absl::SleepFor(absl::Milliseconds(20));
  EXPECT_EQ(supervisor_->doing(), "comparing the data (37 %)");
  Stop(4, true);
  WaitForEvent(Kind::kFinished);
  WaitForNoRanks();
  while (!supervisor_->doing().empty()) absl::SleepFor(absl::Milliseconds(20));
}

TEST_F(SupervisorTest, WhatRanksHaveComparedOutlivesThem) {
  for (const int64_t epoch : {1, 2, 3}) {
    Start({TestAssignment("remember", epoch)});
    std::string words;
    for (int64_t before = 1; before < epoch; ++before) words += "word ";
    EXPECT_EQ(WaitForReport<LogReport>().text, "found: " + words);
    WaitForEvent(Kind::kFinished);
    WaitForNoRanks();
  }
}

TEST_F(SupervisorTest, BytesThatAreNotUtf8ReachTheCoordinatorAsText) {
  Start({TestAssignment("bytes")});
  std::string text;
  std::vector<std::string> logs;
  WaitFor([&](const WorkerReport& r) {
    if (const auto* log = std::get_if<LogReport>(&r)) logs.push_back(log->text);
    if (const auto* event = std::get_if<RankReport>(&r); event != nullptr && event->kind == Kind::kFailed) text = event->message;
    return !text.empty() && logs.size() == 2;
  });
  EXPECT_EQ(text, "file \\xff");
  EXPECT_THAT(logs, testing::UnorderedElementsAre("printed \\xff\\xfe", "logged \\xff"));
}

TEST_F(SupervisorTest, ARankGetsAListedEnvironmentAndNoCoreFiles) {
  setenv("SECRET_OF_THE_DAEMON", "x", 1);
  Start({TestAssignment("environment")});
  EXPECT_EQ(WaitForReport<LogReport>().text, "secret: 0, core files: 0");
}

TEST_F(SupervisorTest, ARankIsToldItsRoots) {
  RankAssignment assignment = TestAssignment("arguments");
  assignment.config.data.path = "/data/text";
  Start({assignment});
  EXPECT_THAT(WaitForReport<LogReport>().text, testing::EndsWith(" --read-root /data "));
  assignment.epoch = Epoch(2);
  assignment.config.checkpoint.folder = "/data/checkpoints/job";
  Start({assignment});
  EXPECT_THAT(WaitForReport<LogReport>().text, testing::EndsWith(" --read-root /data --write-root /data "));
}

TEST_F(SupervisorTest, ARankIsToldWhatItAuthenticates) {
  Start({TestAssignment("arguments")});
  EXPECT_THAT(WaitForReport<LogReport>().text, HasSubstr(" --data-authentication between-machines "));
}

TEST_F(SupervisorTest, ARankThatFloodsItsOutputDelaysNobody) {
  Start({TestAssignment("flood", 4, 0), TestAssignment("train", 4, 1)});
  std::string line;
  bool finished = false;
  WaitFor([&](const WorkerReport& r) {
    const auto* event = std::get_if<RankReport>(&r);
    if (const auto* log = std::get_if<LogReport>(&r)) line = log->text;
    finished |= event != nullptr && event->rank == 1 && event->kind == Kind::kFinished;
    return finished && !line.empty();
  });
  EXPECT_EQ(line, std::string(8 << 10, 'x') + " [... 57344 bytes cut]");
  Stop(4, false);
  EXPECT_THAT(WaitForEvent(Kind::kFinished, 0).message, HasSubstr("killed: a test says so"));
}

TEST_F(SupervisorTest, WhatARankSaysIsBoundedByKind) {
  Start({TestAssignment("long")});
  EXPECT_THAT(WaitForReport<LogReport>().text, testing::EndsWith("y [... 91808 bytes cut]"));
  EXPECT_THAT(WaitForEvent(Kind::kFailed).message, HasSubstr("a rendezvous value of 10485"));
}

TEST_F(SupervisorTest, StopKillsAndRepeatsHowRanksEnded) {
  Start({TestAssignment("silent", 4, 0), TestAssignment("train", 4, 1)});
  WaitForEvent(Kind::kFinished, 1);
  Stop(4, false);
  EXPECT_EQ(WaitForEvent(Kind::kFinished, 1).message, "all steps done") << "a restarted coordinator asks again";
  EXPECT_THAT(WaitForEvent(Kind::kFinished, 0).message, HasSubstr("killed: a test says so"));
  WaitForNoRanks();
}

TEST_F(SupervisorTest, ANewEpochEndsTheOldAndAnOldOneIsIgnored) {
  Start({TestAssignment("silent", 7)});
  WaitForEvent(Kind::kReady);
  Start({TestAssignment("train", 6)});
  Start({TestAssignment("train", 8)});
  std::map<Epoch, std::string> ends;  // in whichever order they come
  WaitFor([&](const WorkerReport& r) {
    if (const auto* event = std::get_if<RankReport>(&r); event != nullptr && event->kind == Kind::kFinished)
      ends[event->epoch] = event->message;
    return ends.size() == 2;
  });
  EXPECT_THAT(ends[Epoch(7)], HasSubstr("killed: generation 8 of job job begins"));
  EXPECT_EQ(ends[Epoch(8)], "all steps done");
}

TEST_F(SupervisorTest, MeetsThroughTheCoordinatorAndAsksAgain) {
  Start({TestAssignment("meet")});
  EXPECT_EQ(WaitForReport<KvGetReport>().key, "rank-other");
  supervisor_->OnConnected("");
  EXPECT_EQ(WaitForReport<KvSetReport>().value, "here");
  EXPECT_EQ(WaitForReport<KvGetReport>().rank, 0);
  supervisor_->Deliver(KvValueCommand{JobId("job"), Epoch(1), "rank-other", "you", 0});
  EXPECT_EQ(WaitForReport<LogReport>().text, "met you");
  WaitForEvent(Kind::kFinished);
}

// A coordinator that was started with an empty store, and begins at 1.
TEST_F(SupervisorTest, RanksOfAnotherStoreEndAndItsNumbersFenceNothing) {
  supervisor_->OnConnected("one");
  supervisor_->Start({{TestAssignment("until-stopped", 7)}, "seven"});
  WaitForEvent(Kind::kReady);
  supervisor_->OnConnected("one");
  supervisor_->OnConnected("two");
  EXPECT_THAT(WaitForEvent(Kind::kFinished).message, HasSubstr("the coordinator has another store"));
  supervisor_->Start({{TestAssignment("train", 1)}, "first"});
  EXPECT_EQ(WaitForEvent(Kind::kFinished).message, "all steps done");
  EXPECT_EQ(supervisor_->newest_epochs(),
            (std::vector<SeenEpoch>{{JobId("job"), Epoch(7), "seven", "one"}, {JobId("job"), Epoch(1), "first", "two"}}));
}

TEST_F(SupervisorTest, SaysTheNewestStepAgainToANewSession) {
  Start({TestAssignment("until-stopped")});
  EXPECT_EQ(WaitForReport<StepReport>().stats.step, 1);
  supervisor_->OnConnected("");
  EXPECT_EQ(WaitForReport<StepReport>().stats.step, 1);
}

TEST_F(SupervisorTest, PublishesOnlyWhenAllowed) {
  for (const bool allowed : {true, false}) {
    Start({TestAssignment("publish", allowed ? 1 : 2)});
    const auto asked = WaitForReport<PublishReport>();
    supervisor_->Deliver(
        PublishAnswerCommand{asked.job, asked.epoch, asked.step, 0, allowed, "epoch 9 is newer", asked.question});
    if (allowed) {
      EXPECT_EQ(WaitForReport<CheckpointReport>().bytes, 10);
    } else {
      EXPECT_THAT(WaitForEvent(Kind::kFailed).message, HasSubstr("epoch 9 is newer"));
    }
  }
}

TEST_F(SupervisorTest, WhatCannotBeStartedIsReported) {
  RankAssignment assignment = TestAssignment("train");
  assignment.device.id = DeviceId("n9/gpu0");
  Start({assignment});
  EXPECT_THAT(WaitForEvent(Kind::kFailed).message, HasSubstr("n9/gpu0"));
  EXPECT_TRUE(Ranks().empty());
}

TEST_F(SupervisorTest, TheEndKillsEverything) {
  Start({TestAssignment("silent", 1, 0), TestAssignment("until-stopped", 1, 1)});
  WaitForEvent(Kind::kReady, 1);
  EXPECT_EQ(Ranks().size(), 2u);
  supervisor_.reset();
  EXPECT_TRUE(Ranks().empty());
}

}  // namespace
}  // namespace motley::worker
