#include "coordinator/state/lending.h"

#include "coordinator/state/queue.h"
#include "tests/coordinator/state/decide_fixture.h"

namespace motley::coordinator {
namespace {

// Job j has the cluster; k came later.
class LendingTest : public DecideTest {
 protected:
  LendingTest() {
    JobRecord& later = state_.jobs[JobId("k")];
    later.id = JobId("k");
    later.submitted_unix_ms = 1;
    later.config.training.steps = 100;
  }
  // As applied: j was told to wait for n2, so long ago.
  void WaitFor(absl::Duration time) {
    run().named = {"n2"};
    node("n2").connected = false;
    const Decision decision = Now();
    ASSERT_TRUE(std::holds_alternative<Wait>(decision.action)) << decision.reason;
    EXPECT_TRUE(std::get<Wait>(decision.action).lends);
    run().lends_since = now_ - time;
  }
  std::optional<JobId> Borrower() { return ChooseBorrower(now_, state_, config_); }
  // j was put aside, and k has the cluster.
  void Lend() {
    WaitFor(config_.lend_after);
    run().aside = {now_, state_.membership_changed, 0, "waits for n2"};
    state_.aside[JobId("j")] = std::move(run());
    state_.run.emplace().job = JobId("k");
  }
  void ComeBack() {
    node("n2").connected = true;
    now_ += absl::Minutes(1);
    state_.membership_changed = now_ - absl::Seconds(30);
  }
  Claims Claimed() { return DecideClaims(now_, state_, config_); }
};

TEST_F(LendingTest, TheOldestOfTheOthersBorrowsAfterAWhile) {
  WaitFor(config_.lend_after / 2);
  EXPECT_EQ(Borrower(), std::nullopt) << "perhaps a worker is started anew";
  run().lends_since = now_ - config_.lend_after;
  EXPECT_EQ(Borrower(), JobId("k"));
  state_.jobs[JobId("i")].id = JobId("i");
  EXPECT_EQ(Borrower(), JobId("i")) << "submitted before";
  state_.jobs.at(JobId("i")).stop_requested = true;
  EXPECT_EQ(Borrower(), JobId("k"));
  state_.jobs.at(JobId("k")).phase = JobPhase::kStopped;
  EXPECT_EQ(Borrower(), std::nullopt);
}

TEST_F(LendingTest, NobodyBorrowsForAMoment) {
  WaitFor(absl::Hours(1));
  ASSERT_EQ(Borrower(), JobId("k"));
  const ClusterState lends = state_;
  state_.stops_at = now_ + absl::Seconds(1);
  EXPECT_EQ(Borrower(), std::nullopt) << "the coordinator ends";
  state_ = lends;
  node("n1").drained = true;
  EXPECT_EQ(Borrower(), std::nullopt) << "nobody could train";
  state_ = lends;
  run().has_run = true;
  run().storage_ok[NodeName("n1")] = 1;
  AddNode("n3");
  EXPECT_EQ(Borrower(), std::nullopt) << "n3 is looked at";
  run().probes[NodeName("n3")].incarnation = 1;
  run().probes[NodeName("n3")].stage = ProbeStage::kRefused;
  EXPECT_EQ(Borrower(), JobId("k"));
}

TEST_F(LendingTest, AWaitThatTimeEndsDoesNotLend) {
  run().trouble = {Remedy::kWaitForStorage, 3, 0, "the folder is away", false};
  run().stage_since = now_;
  const Decision decision = Now();
  ASSERT_TRUE(std::holds_alternative<Wait>(decision.action)) << decision.reason;
  EXPECT_FALSE(std::get<Wait>(decision.action).lends);
}

TEST_F(LendingTest, WhoseDevicesAreBackClaimsTheCluster) {
  Lend();
  EXPECT_EQ(Claimed().claimant, std::nullopt);
  EXPECT_TRUE(Claimed().unable.empty()) << "it is not even asked: nothing has changed";
  now_ += absl::Minutes(1);
  AddNode("n3");
  ASSERT_EQ(Claimed().unable.size(), 1u) << "another node is none of its";
  EXPECT_NE(Claimed().unable[0].second.find("n2 (lost"), std::string::npos) << Claimed().unable[0].second;
  ComeBack();
  EXPECT_EQ(Claimed().claimant, JobId("j"));
  state_.membership_changed = now_;
  EXPECT_EQ(Claimed().claimant, std::nullopt) << "that has to settle";
  ComeBack();
  state_.stops_at = now_ + absl::Seconds(1);
  EXPECT_EQ(Claimed().claimant, std::nullopt);
}

TEST_F(LendingTest, EachTryInVainMakesTheNextOneWait) {
  Lend();
  JobRun& lender = state_.aside.at(JobId("j"));
  ComeBack();
  lender.aside.since = now_;
  lender.aside.most_tried = 2;
  lender.aside.times = 1;
  EXPECT_EQ(Claimed().claimant, JobId("j"));
  for (const auto& [times, seconds] : {std::pair(2, 30), std::pair(3, 60), std::pair(20, 600)}) {
    lender.aside.times = times;
    lender.aside.since = now_ - absl::Seconds(seconds - 1);
    EXPECT_EQ(Claimed().claimant, std::nullopt) << times;
    lender.aside.since = now_ - absl::Seconds(seconds);
    EXPECT_EQ(Claimed().claimant, JobId("j")) << times;
  }
}

TEST_F(LendingTest, MoreDevicesThanItEverTriedAreNotWaitedFor) {
  Lend();
  JobRun& lender = state_.aside.at(JobId("j"));
  ComeBack();
  lender.aside = {now_, {}, 20, "no plan fits", 2};
  EXPECT_EQ(Claimed().claimant, std::nullopt) << "with as many it was in vain";
  AddNode("n3");
  now_ += absl::Seconds(30);
  EXPECT_EQ(Claimed().claimant, JobId("j"));
}

TEST_F(LendingTest, WhereTheBorrowerWaitsAsWellNobodyIsDisplaced) {
  Lend();
  ComeBack();
  state_.aside.at(JobId("j")).aside = {now_, {}, 20, "no plan fits", 2};
  EXPECT_EQ(Claimed().claimant, std::nullopt);
  run().lends_since = now_;
  EXPECT_EQ(Claimed().claimant, JobId("j"));
}

TEST_F(LendingTest, TheBorrowerMakesRoomAndSavesWhatItTrained) {
  Lend();
  ComeBack();
  state_.claimant = JobId("j");
  for (const Stage stage : {Stage::kIdle, Stage::kStorage}) {
    Enter(stage);
    run().ranks.clear();
    EXPECT_TRUE(std::holds_alternative<Yield>(Now().action)) << Now().reason;
  }
  Enter(Stage::kPlanning);
  EXPECT_TRUE(std::holds_alternative<KeepOn>(Now().action)) << "ranks that measured are there";
  for (RankRun& rank : run().ranks) rank.ended = true;
  EXPECT_TRUE(std::holds_alternative<Yield>(Now().action));
  for (const Stage stage : {Stage::kProfiling, Stage::kStarting, Stage::kRunning}) {
    Enter(stage);
    run().profiling = {NodeName("n1")};
    const Decision decision = Now();
    ASSERT_TRUE(std::holds_alternative<EndEpoch>(decision.action)) << decision.reason;
    const auto& end = std::get<EndEpoch>(decision.action);
    EXPECT_EQ(end.save, stage == Stage::kRunning);
    EXPECT_EQ(end.ending, Ending::kReplan);
    EXPECT_EQ(decision.reason, "the devices of job j, which lent the cluster, are back: this one is queued again");
  }
  state_.jobs.at(JobId("k")).stop_requested = true;
  EXPECT_EQ(std::get<EndEpoch>(Now().action).ending, Ending::kStop) << "the user's word is before";
}

TEST_F(LendingTest, BothSayIt) {
  Lend();
  EXPECT_EQ(LenderSentence(state_, state_.aside.at(JobId("j"))),
            "waits for n2; lends the cluster to job k until its devices are back");
  EXPECT_EQ(BorrowerSentence(state_), "borrows the cluster from job j, and is queued again when that job's devices are back");
  ASSERT_EQ(DecideQueue(state_).waiting.size(), 1u);
  EXPECT_EQ(DecideQueue(state_).waiting[0].first, JobId("j"));
  state_.claimant = JobId("j");
  EXPECT_EQ(LenderSentence(state_, state_.aside.at(JobId("j"))),
            "its devices are back: goes on when job k, which borrowed the cluster, has made room");
}

TEST_F(LendingTest, OfAFolderBothSayIt) {
  Lend();
  state_.aside.at(JobId("j")).aside = {now_, state_.membership_changed, 0, "/c/j does not answer", 0, true};
  EXPECT_EQ(LenderSentence(state_, state_.aside.at(JobId("j"))),
            "/c/j does not answer; lends the cluster to job k until its checkpoint folder is back");
  EXPECT_EQ(BorrowerSentence(state_),
            "borrows the cluster from job j, and is queued again when that job's checkpoint folder is back");
  state_.claimant = JobId("j");
  EXPECT_EQ(Now().reason, "the checkpoint folder of job j, which lent the cluster, is back: this one is queued again");
}

}  // namespace
}  // namespace motley::coordinator
