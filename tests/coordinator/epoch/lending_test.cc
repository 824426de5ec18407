// The cluster while the job whose turn it is waits for devices: others train on what is left, and give it back.
#include <gmock/gmock.h>

#include "coordinator/epoch/ending.h"
#include "tests/coordinator/epoch/invented_cluster.h"

namespace motley::coordinator {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int64_t kForEver = 1'000'000;

class Lending : public InventedCluster {
 protected:
  void DialAll() {
    for (Node& node : nodes_) Dial(node);
  }
  void TurnsFor(absl::Duration time) {
    for (const absl::Duration end = clock_.Now() + time; clock_.Now() < end;) Turn();
  }
  template <typename Condition>
  bool Until(Condition condition) {
    for (const absl::Duration end = clock_.Now() + absl::Minutes(20); clock_.Now() < end && !condition();) Turn();
    return condition();
  }
  bool Trains(const std::string& id, int64_t step) {
    return Until([&] { return job(id).phase == JobPhase::kRunning && job(id).step >= step; });
  }
  JobRecord& AddPinned(const std::string& id, const std::string& node, int64_t steps) {
    JobRecord& added = AddJob(id, steps);
    added.config.planner.pins = "stage0=" + node;
    return added;
  }
  // "a" trained on n1, which is lost; "b" has borrowed the rest.
  void Borrow() {
    AddPinned("a", "n1", 80);
    DialAll();
    ASSERT_TRUE(Trains("a", 5)) << job("a").reason;
    AddJob("b", kForEver);
    Lose(nodes_[1]);
    ASSERT_TRUE(Trains("b", 3)) << job("b").reason << "; " << job("a").reason;
  }
  void Stop(const std::string& id) {
    job(id).stop_requested = true;
    Drive(*core_);
  }
};

TEST_F(Lending, AnotherTrainsUntilTheDevicesAreBack) {
  Borrow();
  EXPECT_EQ(job("a").phase, JobPhase::kWaiting);
  EXPECT_THAT(job("a").reason, HasSubstr("planner.pins names what cannot be used now: n1 (lost: "));
  EXPECT_THAT(job("a").reason, HasSubstr("; lends the cluster to job b until its devices are back"));
  EXPECT_THAT(job("b").reason, HasSubstr("training; borrows the cluster from job a, and is queued again when"));
  Dial(nodes_[1]);
  ASSERT_TRUE(Until([&] { return job("a").phase == JobPhase::kRunning && job("a").step > 0; })) << job("a").reason;
  EXPECT_EQ(job("b").phase, JobPhase::kQueued);
  const int64_t saved = saved_[JobId("b")];
  EXPECT_GE(saved, 3) << "it was told to save";
  EXPECT_EQ(job("b").step, saved);
  EXPECT_THAT(job("b").reason, HasSubstr("waits for job a, which has the cluster"));
  ASSERT_TRUE(Trains("b", saved + 1)) << job("b").reason;
  EXPECT_EQ(job("a").phase, JobPhase::kSucceeded);
  EXPECT_EQ(job("b").reason, "training") << "it is its own turn now";
}

// The job never ran: its node was gone when it came.
TEST_F(Lending, AJobThatNeverRanLends) {
  DialAll();
  Lose(nodes_[1]);
  AddPinned("a", "n1", 50);
  AddJob("b", kForEver);
  ASSERT_TRUE(Trains("b", 3)) << job("b").reason;
  Dial(nodes_[1]);
  EXPECT_TRUE(Trains("a", 1)) << job("a").reason;
}

TEST_F(Lending, AWorkerThatIsStartedAnewCostsNobodyItsTurn) {
  AddPinned("a", "n1", kForEver);
  DialAll();
  ASSERT_TRUE(Trains("a", 5));
  AddJob("b", kForEver);
  Lose(nodes_[1]);
  TurnsFor(absl::Seconds(3));
  Dial(nodes_[1]);
  ASSERT_TRUE(Until([&] { return job("a").phase == JobPhase::kRunning; }));
  EXPECT_EQ(job("b").epoch, Epoch()) << "it never began";
}

TEST_F(Lending, WithoutAnyDeviceAllStayInTheQueue) {
  AddJob("a", kForEver);
  AddJob("b", kForEver);
  TurnsFor(absl::Minutes(2));
  EXPECT_EQ(job("a").phase, JobPhase::kWaiting);
  EXPECT_EQ(job("b").phase, JobPhase::kQueued);
}

TEST_F(Lending, WhoeverCannotRunEitherWaitsAndIsPlannedOnce) {
  DialAll();
  Lose(nodes_[1]);
  AddPinned("a", "n1", 50);
  AddJob("b", 50);
  fewest_devices_[JobId("b")] = 4;
  AddJob("c", kForEver);
  ASSERT_TRUE(Trains("c", 3)) << job("c").reason;
  TurnsFor(absl::Minutes(5));
  EXPECT_EQ(job("c").phase, JobPhase::kRunning);
  EXPECT_EQ(job("b").phase, JobPhase::kWaiting) << "that devices are away now is no reason to fail";
  EXPECT_THAT(job("b").reason, HasSubstr("no plan for the devices that can be borrowed (too few devices"));
  EXPECT_THAT(job("b").reason, HasSubstr("lends the cluster to job c"));
  EXPECT_EQ(plannings_[JobId("a")], 0);
  EXPECT_EQ(plannings_[JobId("b")], 1);
  Dial(nodes_[1]);
  ASSERT_TRUE(Trains("a", 1)) << "the oldest first: " << job("a").reason;
  EXPECT_EQ(job("c").phase, JobPhase::kQueued);
  ASSERT_TRUE(Trains("b", 1)) << job("b").reason;
  EXPECT_EQ(job("a").phase, JobPhase::kSucceeded);
  EXPECT_TRUE(Trains("c", saved_[JobId("c")] + 1)) << job("c").reason;
}

// There is no plan for it on these devices at all: in its own turn it fails as ever.
TEST_F(Lending, ABorrowerWithoutAPlanFailsInItsOwnTurn) {
  AddPinned("a", "n1", 60);
  DialAll();
  ASSERT_TRUE(Trains("a", 5));
  Lose(nodes_[1]);
  AddJob("b", 50);
  fewest_devices_[JobId("b")] = 9;
  ASSERT_TRUE(Until([&] { return job("b").phase == JobPhase::kWaiting; })) << job("b").reason;
  Stop("a");
  EXPECT_TRUE(Until([&] { return job("b").phase == JobPhase::kFailed; })) << job("b").reason;
}

TEST_F(Lending, AJobThatTakesTheClusterBackInVainWaitsLonger) {
  AddJob("a", kForEver);
  DialAll();
  ASSERT_TRUE(Trains("a", 5));
  AddJob("b", kForEver);
  fewest_devices_[JobId("a")] = 5;
  Lose(nodes_[1]);
  ASSERT_TRUE(Trains("b", 3)) << job("b").reason;
  plannings_.clear();
  for (int change = 0; change < 40; ++change) {
    ASSERT_TRUE(SetDrained(*core_, NodeName("n2"), change % 2 == 0).ok());
    TurnsFor(absl::Seconds(30));
  }
  EXPECT_GE(plannings_[JobId("a")], 2);
  EXPECT_LE(plannings_[JobId("a")], 7) << "in 20 minutes, with 40 changes";
  fewest_devices_[JobId("a")] = 4;
  ASSERT_TRUE(SetDrained(*core_, NodeName("n2"), false).ok());
  Dial(nodes_[1]);
  EXPECT_TRUE(Trains("a", 6)) << job("a").reason;
}

TEST_F(Lending, EitherCanBeStopped) {
  Borrow();
  const Epoch epoch = job("b").epoch;
  Stop("a");
  EXPECT_EQ(job("a").phase, JobPhase::kStopped);
  EXPECT_EQ(job("a").reason, "stopped by the user");
  TurnsFor(absl::Seconds(5));
  EXPECT_EQ(job("b").epoch, epoch) << "it trains on";
  EXPECT_EQ(job("b").reason, "training");
}

TEST_F(Lending, ABorrowerThatIsStoppedGivesTheClusterToTheNext) {
  Borrow();
  AddJob("c", kForEver);
  Stop("b");
  ASSERT_TRUE(Trains("c", 1)) << job("c").reason;
  EXPECT_EQ(job("b").phase, JobPhase::kStopped);
  EXPECT_THAT(job("a").reason, HasSubstr("lends the cluster to job c"));
}

TEST_F(Lending, ABorrowerThatIsStoppedWhileItSavesForTheOtherHasStopped) {
  Borrow();
  Dial(nodes_[1]);
  ASSERT_TRUE(Until([&] {
    Drive(*core_);  // its ranks have not answered yet
    return core_->state.run->stage == Stage::kStopping;
  }));
  Stop("b");
  ASSERT_TRUE(Trains("a", 1));
  EXPECT_EQ(job("b").phase, JobPhase::kStopped);
}

TEST_F(Lending, ARestartChangesNothing) {
  Borrow();
  RestartCore();
  for (const int n : {0, 2, 3}) Dial(nodes_[n], false);
  EXPECT_EQ(core_->state.run->job, JobId("b"));
  ASSERT_TRUE(Until([&] { return job("b").phase == JobPhase::kRunning; })) << job("b").reason;
  TurnsFor(absl::Seconds(30));
  EXPECT_EQ(job("b").phase, JobPhase::kRunning);
  EXPECT_EQ(job("a").phase, JobPhase::kWaiting);
  EXPECT_THAT(job("a").reason, HasSubstr("n1 (not seen since the coordinator was started)"));
  EXPECT_THAT(job("a").reason, HasSubstr("lends the cluster to job b"));
  Dial(nodes_[1]);
  EXPECT_TRUE(Trains("a", 1)) << job("a").reason;
  EXPECT_EQ(job("b").phase, JobPhase::kQueued);
}

// Its job "a" waits for its folder; "b" came later.
class FolderLending : public Lending {
 protected:
  void Hang() {
    JobRecord& waiting = AddJob("a", 80);
    waiting.config.checkpoint.folder = "/share";
    Batch batch;
    batch.jobs.push_back(waiting);
    ASSERT_TRUE(store_->Commit(batch).ok());
    hanging_ = {JobId("a")};
    AddJob("b", kForEver);
    DialAll();
    ASSERT_TRUE(Trains("b", 3)) << waiting.reason;
  }
  // What is under way there comes back.
  void Answer(const absl::Status& look = absl::OkStatus()) {
    core_->looks.erase("/share/a");
    if (look.ok()) hanging_.clear();
    TellFolder(*core_, JobId("a"), look);
  }
};

TEST_F(FolderLending, AnotherTrainsUntilTheFolderAnswers) {
  Hang();
  EXPECT_EQ(job("a").phase, JobPhase::kWaiting);
  EXPECT_THAT(job("a").reason, HasSubstr("checkpoint.folder '/share' does not answer on the coordinator's machine"));
  EXPECT_THAT(job("a").reason, HasSubstr("; lends the cluster to job b until its checkpoint folder is back"));
  const Epoch epoch = job("b").epoch;
  TurnsFor(absl::Minutes(5));
  EXPECT_EQ(job("b").phase, JobPhase::kRunning) << job("b").reason;
  EXPECT_EQ(job("b").epoch, epoch) << "nobody displaced it";
  Answer();
  ASSERT_TRUE(Trains("a", 1)) << job("a").reason;
  EXPECT_EQ(job("b").phase, JobPhase::kQueued);
  EXPECT_TRUE(Trains("b", saved_[JobId("b")] + 1)) << job("b").reason;
  EXPECT_EQ(job("a").phase, JobPhase::kSucceeded);
}

TEST_F(FolderLending, WhatAnswersThatItCannotBeReadIsWaitedForFurther) {
  Hang();
  Answer(absl::PermissionDeniedError("/share/a: permission denied"));
  TurnsFor(absl::Seconds(5));
  EXPECT_EQ(job("b").phase, JobPhase::kRunning);
  EXPECT_THAT(job("a").reason, HasSubstr("the coordinator cannot look for checkpoints now: /share/a: permission denied"));
  ASSERT_TRUE(Until([&] { return core_->looks.contains("/share/a"); })) << "it is looked into again";
  Answer();
  EXPECT_TRUE(Trains("a", 1)) << job("a").reason;
}

TEST_F(FolderLending, AlsoAfterARestartNobodyIsDisplacedForAFolderThatHangs) {
  Hang();
  RestartCore();
  for (Node& node : nodes_) Dial(node, false);
  ASSERT_TRUE(Until([&] { return job("a").reason.find("restarted") != std::string::npos; })) << job("a").reason;
  EXPECT_THAT(job("a").reason, HasSubstr("looks into the job's checkpoint folder '/share/a' first")) << "at once";
  EXPECT_THAT(job("a").reason, Not(HasSubstr("devices")));
  ASSERT_TRUE(Until([&] { return job("b").phase == JobPhase::kRunning; })) << job("b").reason;
  const Epoch epoch = job("b").epoch;
  TurnsFor(absl::Minutes(5));
  EXPECT_EQ(job("b").epoch, epoch);
  EXPECT_EQ(job("a").phase, JobPhase::kWaiting);
  EXPECT_THAT(job("a").reason, HasSubstr("checkpoint.folder '/share' does not answer"));
  Answer();
  EXPECT_TRUE(Trains("a", 1)) << job("a").reason;
}

TEST_F(FolderLending, ItCanBeStopped) {
  Hang();
  Stop("a");
  EXPECT_EQ(job("a").phase, JobPhase::kStopped);
  TurnsFor(absl::Seconds(5));
  EXPECT_EQ(job("b").phase, JobPhase::kRunning);
  Answer();
  TurnsFor(absl::Seconds(5));
  EXPECT_EQ(job("b").phase, JobPhase::kRunning) << "nobody wants to know any more";
}

TEST_F(FolderLending, ABorrowerThatEndsLeavesTheClusterToTheNextAtOnce) {
  Hang();
  AddJob("c", kForEver);
  Stop("b");
  const absl::Duration stopped = clock_.Now();
  ASSERT_TRUE(Trains("c", 1)) << job("c").reason;
  EXPECT_LT(clock_.Now() - stopped, config_.driver.look_patience) << "the folder is known to hang";
}

TEST_F(Lending, ANodeThatComesBackIsToldToEndTheRanksOfAllJobs) {
  Borrow();
  Dial(nodes_[1], false);
  std::set<JobId> told;
  for (const CoordinatorCommand& command : nodes_[1].link->sent) {
    if (const auto* stop = std::get_if<StopCommand>(&command)) told.insert(stop->job);
  }
  EXPECT_EQ(told, (std::set<JobId>{JobId("a"), JobId("b")}));
}

}  // namespace
}  // namespace motley::coordinator
