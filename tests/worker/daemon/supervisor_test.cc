#include "worker/daemon/supervisor.h"

#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <functional>
#include <iterator>

#include "tests/worker/daemon/test_assignment.h"

namespace motley::worker {
namespace {

using ::testing::HasSubstr;
using Kind = v1::RankEvent;

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

class SupervisorTest : public ::testing::Test {
 protected:
  SupervisorTest() : metrics_(registry_, "n1", {}) { Restart({}); }

  void Restart(WatchConfig watch, absl::Duration stop_floor = absl::Minutes(1)) {
    supervisor_.reset();
    SupervisorConfig config;
    config.rank_binary = "/proc/self/exe";
    config.device_ids = {"n1/gpu0", "n1/gpu1"};
    config.watch = watch;
    config.stop_floor = stop_floor;
    config.tick = absl::Milliseconds(10);
    supervisor_ = std::make_unique<Supervisor>(config, clock_, outbox_, metrics_);
  }

  void Start(const std::vector<v1::RankAssignment>& ranks) {
    v1::StartEpoch start;
    for (const v1::RankAssignment& rank : ranks) *start.add_ranks() = rank;
    supervisor_->Start(start);
  }
  void Stop(int64_t epoch, bool save) {
    v1::StopEpoch stop;
    stop.set_job_id("job");
    stop.set_epoch(epoch);
    stop.set_save(save);
    stop.set_reason("a test says so");
    supervisor_->Stop(stop);
  }
  // The first message that satisfies the condition; an empty one after 20 s.
  v1::WorkerMessage WaitFor(const std::function<bool(const v1::WorkerMessage&)>& wanted) {
    const absl::Time deadline = absl::Now() + absl::Seconds(20);
    while (absl::Now() < deadline) {
      if (auto message = outbox_.Pop(absl::Milliseconds(100)); message && wanted(*message)) return *message;
    }
    ADD_FAILURE() << "the message did not come";
    return {};
  }
  v1::RankEvent WaitForEvent(v1::RankEvent::Kind kind, int rank = 0) {
    return WaitFor([&](const v1::WorkerMessage& m) { return m.has_rank_event() && m.rank_event().kind() == kind && m.rank_event().rank() == rank; })
        .rank_event();
  }
  void WaitForNoChildren() {
    const absl::Time deadline = absl::Now() + absl::Seconds(20);
    while (!Children().empty() && absl::Now() < deadline) outbox_.Pop(absl::Milliseconds(20));
    EXPECT_TRUE(Children().empty());
  }

  SystemClock clock_;
  MetricsRegistry registry_;
  WorkerMetrics metrics_;
  Outbox outbox_;
  std::unique_ptr<Supervisor> supervisor_;
};

TEST_F(SupervisorTest, TrainsToTheEnd) {
  Start({TestAssignment("train")});
  WaitForEvent(Kind::KIND_READY);
  const v1::WorkerMessage step = WaitFor([](const v1::WorkerMessage& m) { return m.has_step_report(); });
  EXPECT_EQ(step.step_report().record().step(), 1);
  EXPECT_EQ(step.step_report().job_id(), "job");
  EXPECT_EQ(WaitForEvent(Kind::KIND_FINISHED).message(), "all steps done");
  WaitForNoChildren();
  EXPECT_THAT(registry_.ToText(), HasSubstr("motley_rank_exits_total{kind=\"finished\",node=\"n1\"} 1"));
  EXPECT_THAT(registry_.ToText(), HasSubstr("motley_device_steps_total{device=\"gpu0\",node=\"n1\"} 3"));
}

TEST_F(SupervisorTest, WhatTheRankSaysOfItsEndIsTheKind) {
  Start({TestAssignment("nonfinite", 1)});
  EXPECT_THAT(WaitForEvent(Kind::KIND_NONFINITE).message(), HasSubstr("layer 1"));
  Start({TestAssignment("peer", 2)});
  EXPECT_THAT(WaitForEvent(Kind::KIND_PEER_LOST).message(), HasSubstr("connection closed"));
  Start({TestAssignment("fail", 3)});
  EXPECT_THAT(WaitForEvent(Kind::KIND_FAILED).message(), HasSubstr("matrix product"));
  WaitForNoChildren();
}

TEST_F(SupervisorTest, DeathWithoutAWordIsReportedWithItsLastOutput) {
  Start({TestAssignment("exit")});
  const v1::WorkerMessage log = WaitFor([](const v1::WorkerMessage& m) { return m.has_log(); });
  EXPECT_EQ(log.log().text(), "first line");
  EXPECT_EQ(log.log().source(), "n1/gpu0");
  const v1::RankEvent died = WaitForEvent(Kind::KIND_DIED);
  EXPECT_THAT(died.message(), HasSubstr("status 3"));
  EXPECT_THAT(died.message(), HasSubstr("last words"));
}

TEST_F(SupervisorTest, AKilledRankIsReportedWithItsSignal) {
  Start({TestAssignment("until-stopped")});
  WaitForEvent(Kind::KIND_READY);
  ASSERT_EQ(Children().size(), 1u);
  kill(Children()[0], SIGKILL);
  const v1::RankEvent died = WaitForEvent(Kind::KIND_DIED);
  EXPECT_THAT(died.message(), HasSubstr("signal 9"));
  EXPECT_EQ(died.device_id(), "n1/gpu0");
}

TEST_F(SupervisorTest, AStoppedRankIsHungAndKilled) {
  Restart({.silence_limit = absl::Seconds(1)});
  Start({TestAssignment("until-stopped")});
  WaitFor([](const v1::WorkerMessage& m) { return m.has_step_report(); });
  ASSERT_EQ(Children().size(), 1u);
  kill(Children()[0], SIGSTOP);
  EXPECT_THAT(WaitForEvent(Kind::KIND_HUNG).message(), HasSubstr("n1/gpu0: no sign of life"));
  EXPECT_THAT(WaitForEvent(Kind::KIND_DIED).message(), HasSubstr("because it hung"));
  WaitForNoChildren();
}

TEST_F(SupervisorTest, ARankThatOnlyLivesIsStuck) {
  Restart({.stuck_floor = absl::Milliseconds(600)});
  v1::RankAssignment assignment = TestAssignment("silent");
  assignment.set_first_progress_seconds(0.6);
  Start({assignment});
  EXPECT_THAT(WaitForEvent(Kind::KIND_HUNG).message(), HasSubstr("no progress for"));
}

TEST_F(SupervisorTest, StopThatSavesLetsTheRankFinish) {
  Start({TestAssignment("until-stopped", 4)});
  WaitForEvent(Kind::KIND_READY);
  Stop(4, true);
  EXPECT_EQ(WaitForEvent(Kind::KIND_FINISHED).message(), "stopped as asked");
}

TEST_F(SupervisorTest, ASaveThatTakesTooLongIsADeathAndNoOrderlyEnd) {
  Restart({}, absl::Milliseconds(100));
  v1::RankAssignment assignment = TestAssignment("silent", 4);
  assignment.set_predicted_step_seconds(0);
  Start({assignment});
  WaitForEvent(Kind::KIND_READY);
  Stop(4, true);
  EXPECT_THAT(WaitForEvent(Kind::KIND_DIED).message(), HasSubstr("did not end in time after it was told to save"));
}

TEST_F(SupervisorTest, BytesThatAreNotUtf8ReachTheCoordinatorAsText) {
  Start({TestAssignment("bytes")});
  std::string text;
  std::vector<std::string> logs;
  WaitFor([&](const v1::WorkerMessage& m) {
    if (m.has_log()) logs.push_back(m.log().text());
    if (m.has_rank_event() && m.rank_event().kind() == Kind::KIND_FAILED) text = m.rank_event().message();
    return !text.empty() && logs.size() == 2;
  });
  EXPECT_EQ(text, "file ?");
  EXPECT_THAT(logs, testing::UnorderedElementsAre("printed ??", "logged ?"));
}

TEST_F(SupervisorTest, StopKillsAndRepeatsHowRanksEnded) {
  Start({TestAssignment("silent", 4, 0), TestAssignment("train", 4, 1)});
  WaitForEvent(Kind::KIND_FINISHED, 1);
  Stop(4, false);
  EXPECT_EQ(WaitForEvent(Kind::KIND_FINISHED, 1).message(), "all steps done") << "a restarted coordinator asks again";
  EXPECT_THAT(WaitForEvent(Kind::KIND_FINISHED, 0).message(), HasSubstr("killed: a test says so"));
  WaitForNoChildren();
}

TEST_F(SupervisorTest, ANewEpochEndsTheOldAndAnOldOneIsIgnored) {
  Start({TestAssignment("silent", 7)});
  WaitForEvent(Kind::KIND_READY);
  Start({TestAssignment("train", 6)});
  Start({TestAssignment("train", 8)});
  const v1::RankEvent killed = WaitForEvent(Kind::KIND_FINISHED);
  EXPECT_EQ(killed.epoch(), 7);
  EXPECT_EQ(WaitForEvent(Kind::KIND_FINISHED).epoch(), 8);
}

TEST_F(SupervisorTest, MeetsThroughTheCoordinatorAndAsksAgain) {
  Start({TestAssignment("meet")});
  EXPECT_EQ(WaitFor([](const v1::WorkerMessage& m) { return m.has_kv_get(); }).kv_get().key(), "rank-other");
  supervisor_->OnConnected();
  EXPECT_EQ(WaitFor([](const v1::WorkerMessage& m) { return m.has_kv_set(); }).kv_set().value(), "here");
  EXPECT_EQ(WaitFor([](const v1::WorkerMessage& m) { return m.has_kv_get(); }).kv_get().rank(), 0);
  v1::KvValue value;
  value.set_job_id("job");
  value.set_epoch(1);
  value.set_key("rank-other");
  value.set_value("you");
  supervisor_->Deliver(value);
  EXPECT_EQ(WaitFor([](const v1::WorkerMessage& m) { return m.has_log(); }).log().text(), "met you");
  WaitForEvent(Kind::KIND_FINISHED);
}

TEST_F(SupervisorTest, PublishesOnlyWhenAllowed) {
  for (const bool allowed : {true, false}) {
    Start({TestAssignment("publish", allowed ? 1 : 2)});
    const v1::PublishRequest request = WaitFor([](const v1::WorkerMessage& m) { return m.has_publish_request(); }).publish_request();
    v1::PublishAnswer answer;
    answer.set_job_id("job");
    answer.set_epoch(request.epoch());
    answer.set_step(request.step());
    answer.set_question(request.question());
    answer.set_allowed(allowed);
    answer.set_reason("epoch 9 is newer");
    supervisor_->Deliver(answer);
    if (allowed) {
      EXPECT_EQ(WaitFor([](const v1::WorkerMessage& m) { return m.has_checkpoint_published(); }).checkpoint_published().bytes(), 10);
    } else {
      EXPECT_THAT(WaitForEvent(Kind::KIND_FAILED).message(), HasSubstr("epoch 9 is newer"));
    }
  }
}

v1::ProfileRequest Measure(const std::string& behaviour) {
  v1::ProfileRequest request;
  request.set_job_id("job");
  request.set_epoch(1);
  request.set_collectives(true);
  for (int rank : {0, 1}) {
    *request.add_ranks() = TestAssignment(behaviour, 1, rank);
    request.add_compute_device_ids(request.ranks(rank).device().id());
  }
  return request;
}

TEST_F(SupervisorTest, MeasuresDevicesThenCollectives) {
  supervisor_->Profile(Measure("measure"));
  const v1::ProfileResult result = WaitFor([](const v1::WorkerMessage& m) { return m.has_profile_result(); }).profile_result();
  EXPECT_EQ(result.error(), "");
  EXPECT_EQ(result.compute_size(), 2);
  EXPECT_EQ(result.collectives().points_size(), 1);
  WaitForNoChildren();
}

TEST_F(SupervisorTest, AFailedMeasurementNamesTheDevice) {
  supervisor_->Profile(Measure("fail"));
  const v1::ProfileResult result = WaitFor([](const v1::WorkerMessage& m) { return m.has_profile_result(); }).profile_result();
  EXPECT_THAT(result.error(), HasSubstr("n1/gpu"));
  EXPECT_THAT(result.error(), HasSubstr("no memory"));
  WaitForNoChildren();
}

TEST_F(SupervisorTest, WhatCannotBeStartedIsReported) {
  v1::RankAssignment assignment = TestAssignment("train");
  assignment.mutable_device()->set_id("n9/gpu0");
  Start({assignment});
  EXPECT_THAT(WaitForEvent(Kind::KIND_FAILED).message(), HasSubstr("n9/gpu0"));
  EXPECT_TRUE(Children().empty());
}

TEST_F(SupervisorTest, TheEndKillsEverything) {
  Start({TestAssignment("silent", 1, 0), TestAssignment("until-stopped", 1, 1)});
  WaitForEvent(Kind::KIND_READY, 1);
  EXPECT_EQ(Children().size(), 2u);
  supervisor_.reset();
  EXPECT_TRUE(Children().empty());
}

}  // namespace
}  // namespace motley::worker
