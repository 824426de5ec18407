#include "worker/daemon/supervisor.h"

#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <optional>

#include "tests/common/base/patience.h"
#include "tests/common/base/temp_folder.h"
#include "tests/worker/daemon/test_assignment.h"

namespace motley::worker {
namespace {

using ::testing::HasSubstr;
using Kind = RankEventKind;

// Process ids of this test's living children.
std::vector<pid_t> Children() {
  std::ifstream in("/proc/self/task/" + std::to_string(getpid()) + "/children");
  std::vector<pid_t> pids;
  // The ranks belong to the supervisor's thread.
  DIR* tasks = opendir("/proc/self/task");
  for (dirent* entry = readdir(tasks); entry != nullptr; entry = readdir(tasks)) {
    std::ifstream children(std::string("/proc/self/task/") + entry->d_name + "/children");
    pids.insert(pids.end(), std::istream_iterator<pid_t>(children), {});
  }
  closedir(tasks);
  return pids;
}

OfferedDevice Offered(const char* id, const std::string& program) {
  OfferedDevice device;
  device.description.id = DeviceId(id);
  device.rank_binary = program;
  return device;
}

class SupervisorTest : public ::testing::Test {
 protected:
  SupervisorTest() : metrics_(registry_, "n1", {}) { Restart({}); }

  void Restart(WatchConfig watch, absl::Duration stop_floor = absl::Minutes(1), const std::string& program = "/proc/self/exe") {
    supervisor_.reset();
    SupervisorConfig config;
    for (const char* id : {"n1/gpu0", "n1/gpu1"}) config.devices.push_back(Offered(id, program));
    config.roots = FileRoots({"/data"});
    config.watch = watch;
    config.stop_floor = stop_floor;
    config.tick = absl::Milliseconds(10);
    supervisor_ = std::make_unique<Supervisor>(config, clock_, outbox_, metrics_);
  }

  void Start(const std::vector<RankAssignment>& ranks) { supervisor_->Start({ranks}); }
  void Stop(int64_t epoch, bool save) { supervisor_->Stop({JobId("job"), Epoch(epoch), save, "a test says so"}); }
  std::optional<WorkerReport> Pop(absl::Duration timeout) {
    outbox_.Wait(timeout, /*for_reports=*/true);
    return outbox_.TryPop();
  }
  // The first report that satisfies the condition; an empty one after 20 s.
  WorkerReport WaitFor(const std::function<bool(const WorkerReport&)>& wanted) {
    const absl::Duration deadline = clock_.Now() + Patience(absl::Seconds(20));
    while (clock_.Now() < deadline) {
      if (auto report = Pop(absl::Milliseconds(100)); report && wanted(*report)) return *report;
    }
    ADD_FAILURE() << "the report did not come";
    return {};
  }
  template <typename Report>
  Report WaitForReport() {
    const WorkerReport report = WaitFor([](const WorkerReport& r) { return std::holds_alternative<Report>(r); });
    return std::holds_alternative<Report>(report) ? std::get<Report>(report) : Report();
  }
  RankReport WaitForEvent(RankEventKind kind, int rank = 0) {
    const WorkerReport report = WaitFor([&](const WorkerReport& r) {
      const auto* event = std::get_if<RankReport>(&r);
      return event != nullptr && event->kind == kind && event->rank == rank;
    });
    return std::holds_alternative<RankReport>(report) ? std::get<RankReport>(report) : RankReport();
  }
  // Another test may have left children that nobody waits for.
  std::vector<pid_t> Ranks() const {
    std::vector<pid_t> ranks = Children();
    std::erase_if(ranks, [this](pid_t pid) { return std::find(others_.begin(), others_.end(), pid) != others_.end(); });
    return ranks;
  }
  void WaitForNoRanks() {
    const absl::Duration deadline = clock_.Now() + Patience(absl::Seconds(20));
    while (!Ranks().empty() && clock_.Now() < deadline) Pop(absl::Milliseconds(20));
    EXPECT_TRUE(Ranks().empty());
  }

  const std::vector<pid_t> others_ = Children();

  SystemClock clock_;
  MetricsRegistry registry_;
  WorkerMetrics metrics_;
  Outbox outbox_;
  std::unique_ptr<Supervisor> supervisor_;
};

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

TEST_F(SupervisorTest, WhatTheRankSaysOfItsEndIsTheKind) {
  Start({TestAssignment("nonfinite", 1)});
  EXPECT_THAT(WaitForEvent(Kind::kNonFinite).message, HasSubstr("layer 1"));
  Start({TestAssignment("peer", 2)});
  EXPECT_THAT(WaitForEvent(Kind::kPeerLost).message, HasSubstr("connection closed"));
  Start({TestAssignment("fail", 3)});
  EXPECT_THAT(WaitForEvent(Kind::kFailed).message, HasSubstr("matrix product"));
  WaitForNoRanks();
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
