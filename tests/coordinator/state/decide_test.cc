// Scenarios of the driver's decision: a state is built by hand, time is a number.
#include <gmock/gmock.h>

#include <limits>

#include "tests/coordinator/state/decide_fixture.h"

namespace motley::coordinator {
namespace {

TEST_F(DecideTest, BeginsWhenMembershipHasSettled) {
  state_.membership_changed = now_ - absl::Milliseconds(200);
  EXPECT_TRUE(std::holds_alternative<KeepOn>(Now().action));
  now_ += absl::Seconds(1);
  const Decision decision = Now();
  ASSERT_TRUE(std::holds_alternative<BeginSetup>(decision.action));
  EXPECT_EQ(std::get<BeginSetup>(decision.action).devices.size(), 2u);
}

TEST_F(DecideTest, WaitsWithoutDevicesAndSaysWhy) {
  node("n1").connected = false;
  node("n2").drained = true;
  const Decision decision = Now();
  EXPECT_TRUE(std::holds_alternative<Wait>(decision.action));
  EXPECT_EQ(
      decision.reason,
      "no device can be used (1 node is lost: n1; 1 node is drained: n2); undrain n2, or start motley-worker again on n1; the "
      "job then goes on by itself");
}

// Its own worker keeps no term; whoever does is away.
TEST_F(DecideTest, BeginsNothingWhileNobodyKnowsWhetherAnotherMachineTookOver) {
  state_.members[NodeName("b")].coordinators = {"10.0.0.1:7073", "10.0.0.2:7073"};
  now_ += absl::Minutes(10);
  const Decision decision = Now();
  EXPECT_TRUE(std::holds_alternative<Wait>(decision.action));
  EXPECT_NE(decision.reason.find("another machine may have taken the cluster over"), std::string::npos) << decision.reason;
  state_.members[NodeName("n1")];
  EXPECT_TRUE(std::holds_alternative<BeginSetup>(Now().action));
}

TEST_F(DecideTest, RestartedCoordinatorGivesWorkersTime) {
  run().not_before = now_ + absl::Seconds(10);
  EXPECT_TRUE(std::holds_alternative<KeepOn>(Now().action));
  run().ranks.push_back({DeviceId("n3/gpu0"), 1, 0});
  EXPECT_TRUE(std::holds_alternative<KeepOn>(Now().action)) << "n3 is not back";
  run().ranks = {{DeviceId("n1/gpu0"), 1, 0}};  // back, and still alive under the old epoch
  now_ += absl::Seconds(11);
  EXPECT_TRUE(std::holds_alternative<KeepOn>(Now().action));
  End("n1/gpu0");
  EXPECT_TRUE(std::holds_alternative<BeginSetup>(Now().action));
}

TEST_F(DecideTest, AfterARestartNobodyIsWaitedForWhenAllAreBack) {
  run().not_before = now_ + absl::Seconds(10);
  run().ranks = {{DeviceId("n1/gpu0"), 7, 0}};  // of another incarnation: dead
  EXPECT_TRUE(std::holds_alternative<BeginSetup>(Now().action));
}

TEST_F(DecideTest, ADeathOutranksThePeersThatNoticeIt) {
  Enter(Stage::kRunning);
  Fail(FailureKind::kPeerLost, "n1/gpu0", "connection reset");
  EXPECT_TRUE(std::holds_alternative<KeepOn>(Now().action));  // the cause may still come
  now_ += absl::Milliseconds(500);
  Fail(FailureKind::kDied, "n2/gpu0", "signal 9");
  const Decision decision = Now();
  ASSERT_TRUE(std::holds_alternative<EndEpoch>(decision.action));
  EXPECT_FALSE(std::get<EndEpoch>(decision.action).save);
  EXPECT_EQ(std::get<EndEpoch>(decision.action).ending, Ending::kReplan);
  EXPECT_EQ(decision.reason, "the rank on n2/gpu0 died: signal 9");
}

TEST_F(DecideTest, LostPeersAloneAreReportedAfterTwoSeconds) {
  Enter(Stage::kRunning);
  Fail(FailureKind::kPeerLost, "n1/gpu0", "connection reset");
  now_ += absl::Milliseconds(1900);
  EXPECT_TRUE(std::holds_alternative<KeepOn>(Now().action));
  now_ += absl::Milliseconds(200);
  const Decision decision = Now();
  ASSERT_TRUE(std::holds_alternative<EndEpoch>(decision.action));
  EXPECT_NE(decision.reason.find("nobody said why"), std::string::npos);
}

TEST_F(DecideTest, OfLostPeersOneThatFellSilentIsNamedAndNotOneThatEndedForIt) {
  Enter(Stage::kRunning);
  Fail(FailureKind::kPeerLost, "n1/gpu0", "receiving from n1/gpu1: lost n1/gpu1: the other end closed the connection");
  Fail(FailureKind::kPeerLost, "n1/gpu2", "all-gather: lost n1/gpu1: Connection reset by peer");
  Fail(FailureKind::kPeerLost, "n1/gpu1", "reduce-scatter: lost n2/gpu0: Connection timed out");
  now_ += absl::Milliseconds(2001);
  EXPECT_EQ(
      Now().reason,
      "the ranks lost each other and nobody said why; said by the rank on n1/gpu1: reduce-scatter: lost n2/gpu0: Connection "
      "timed out");
}

TEST_F(DecideTest, TheFirstStalledRankIsTheCauseUnlessOneDied) {
  Enter(Stage::kRunning);
  Fail(FailureKind::kHung, "n2/gpu0", "no progress for 3 s");
  EXPECT_TRUE(std::holds_alternative<KeepOn>(Now().action));
  Fail(FailureKind::kHung, "n1/gpu0", "no progress for 3 s");
  now_ += absl::Milliseconds(301);
  EXPECT_EQ(Now().reason, "the rank on n2/gpu0 made no progress: no progress for 3 s");
}

TEST_F(DecideTest, NonFiniteLossFailsTheJob) {
  Enter(Stage::kRunning);
  Fail(FailureKind::kNonFinite, "n1/gpu0", "loss is NaN in layer 3");
  const Decision decision = Now();
  ASSERT_TRUE(std::holds_alternative<EndEpoch>(decision.action));
  EXPECT_EQ(std::get<EndEpoch>(decision.action).ending, Ending::kFail);
}

TEST_F(DecideTest, DrainSavesAndReplansWithoutWaiting) {
  Enter(Stage::kRunning);
  node("n2").drained = true;
  state_.membership_changed = now_;
  const Decision decision = Now();
  ASSERT_TRUE(std::holds_alternative<EndEpoch>(decision.action));
  EXPECT_TRUE(std::get<EndEpoch>(decision.action).save);
  EXPECT_EQ(std::get<EndEpoch>(decision.action).cause_label, "drained");
  EXPECT_EQ(decision.reason, "n2 is drained");
}

TEST_F(DecideTest, WhatBecameOfANodeThatIsNotUsedAnyMoreIsSaid) {
  AddNode("n3");
  AddNode("n4");
  Enter(Stage::kProfiling);
  node("n2").held = node("n4").held = true;
  run().left_out[DeviceId("n3/gpu0")] = "its rank died 3 times in a row";
  EXPECT_EQ(Now().reason, "profiling begins again: n2, n4 are held and n3 is left out");
}

TEST_F(DecideTest, DivergenceNamesTheDeviceWhereItWasFirst) {
  Enter(Stage::kRunning);
  Fail(FailureKind::kNonFinite, "n2/gpu0",
       "step 3: loss or gradient is NaN or infinite, first in the forward of layer 0 on n1/gpu0");
  EXPECT_EQ(Now().reason,
            "training diverged: step 3: loss or gradient is NaN or infinite, first in the forward of layer 0 on n1/gpu0");
}

TEST_F(DecideTest, JoinsAreBatched) {
  Enter(Stage::kRunning);
  AddNode("n3");
  EXPECT_TRUE(std::holds_alternative<KeepOn>(Now().action));
  now_ += absl::Milliseconds(900);
  AddNode("n4");
  now_ += absl::Milliseconds(900);
  EXPECT_TRUE(std::holds_alternative<KeepOn>(Now().action));
  now_ += absl::Milliseconds(200);
  const Decision decision = Now();
  ASSERT_TRUE(std::holds_alternative<EndEpoch>(decision.action));
  EXPECT_EQ(decision.reason, "n3, n4 can be used now");
  EXPECT_TRUE(std::get<EndEpoch>(decision.action).save);
}

// What a desktop or a notebook does on a card while a job trains there, and a warm afternoon.
TEST_F(DecideTest, HowACardIsJustNowPlansNothingAgain) {
  for (const Stage stage : {Stage::kPlanning, Stage::kRunning}) {
    Enter(stage);
    CardDescription& card = node("n2").description.devices[0].card;
    card.used_by_others_bytes += int64_t{5} << 30;
    card.health += "slowed down: heat";
    now_ += absl::Seconds(5);
    EXPECT_TRUE(std::holds_alternative<KeepOn>(Now().action)) << Now().reason;
    card.driver += "1";
    EXPECT_FALSE(std::holds_alternative<KeepOn>(Now().action)) << "it is another one";
    EXPECT_THAT(Now().reason, testing::EndsWith("n2 offers other devices now"));
    card.driver.clear();
  }
}

TEST_F(DecideTest, StoppingWaitsForEveryRank) {
  Enter(Stage::kStopping);
  End("n1/gpu0");
  EXPECT_TRUE(std::holds_alternative<KeepOn>(Now().action));
  node("n2").connected = false;  // its ranks die with it
  EXPECT_TRUE(std::holds_alternative<EpochEnded>(Now().action));
}

TEST_F(DecideTest, AStoppedJobIsOverWhenItsRanksAre) {
  Enter(Stage::kIdle);
  job().stop_requested = true;
  run().not_before = now_;
  EXPECT_TRUE(std::holds_alternative<KeepOn>(Now().action)) << Now().reason;
  End("n1/gpu0");
  End("n2/gpu0");
  EXPECT_TRUE(std::holds_alternative<Finish>(Now().action)) << Now().reason;
}

TEST_F(DecideTest, AWorkerThatCameBackAsAnotherHasNoOldRanks) {
  Enter(Stage::kStopping);
  End("n1/gpu0");
  node("n2").description.incarnation = 2;
  EXPECT_TRUE(std::holds_alternative<EpochEnded>(Now().action));
}

TEST_F(DecideTest, AKillThatIsNotAnsweredEndsAfterItsTime) {
  Enter(Stage::kStopping);
  now_ += absl::Seconds(11);
  EXPECT_TRUE(std::holds_alternative<EpochEnded>(Now().action));
}

TEST_F(DecideTest, WhatRanksDoBesideTheirStepsIsTheReason) {
  Enter(Stage::kRunning);
  EXPECT_EQ(Now().reason, "training");
  node("n2").doing = "comparing the data (37 %, about 40 s left)";
  EXPECT_EQ(Now().reason, "comparing the data (37 %, about 40 s left)");
  run().checkpoint_trouble = "the disk is full";
  EXPECT_EQ(Now().reason, "comparing the data (37 %, about 40 s left); the disk is full");
  Enter(Stage::kStopping);
  run().saving = true;
  run().ending_reason = "n3 joined";
  EXPECT_EQ(Now().reason, "comparing the data (37 %, about 40 s left): n3 joined");
  node("n2").doing = "";
  EXPECT_EQ(Now().reason, "saving a checkpoint: n3 joined");
}

TEST_F(DecideTest, AFailureWhileSavingKills) {
  Enter(Stage::kStopping);
  run().saving = true;
  Fail(FailureKind::kDied, "n1/gpu0", "signal 9");
  EXPECT_TRUE(std::holds_alternative<KillEpoch>(Now().action));
}

TEST_F(DecideTest, AllStepsDoneIsSuccess) {
  Enter(Stage::kRunning);
  End("n1/gpu0");
  End("n2/gpu0");
  job().step = 100;
  const Decision decision = Now();
  ASSERT_TRUE(std::holds_alternative<Finish>(decision.action));
  EXPECT_EQ(std::get<Finish>(decision.action).phase, JobPhase::kSucceeded);
}

TEST_F(DecideTest, ALastValidationLossThatIsNotFiniteIsSuccessWithANote) {
  Enter(Stage::kRunning);
  End("n1/gpu0");
  End("n2/gpu0");
  job().step = job().last_step.step = 100;
  job().last_step.validation_loss = std::numeric_limits<double>::quiet_NaN();
  const Decision decision = Now();
  ASSERT_TRUE(std::holds_alternative<Finish>(decision.action));
  EXPECT_EQ(std::get<Finish>(decision.action).phase, JobPhase::kSucceeded);
  EXPECT_THAT(decision.reason, testing::StartsWith("all 100 steps are done, but the last validation loss is NaN: "));
}

TEST_F(DecideTest, StopSavesWhileRunningAndIsAtOnceBefore) {
  Enter(Stage::kRunning);
  job().stop_requested = true;
  EXPECT_TRUE(std::get<EndEpoch>(Now().action).save);
  Enter(Stage::kStarting);
  EXPECT_FALSE(std::get<EndEpoch>(Now().action).save);
  Enter(Stage::kPlanning);
  EXPECT_EQ(std::get<Finish>(Now().action).phase, JobPhase::kStopped);
}

TEST_F(DecideTest, AModelThatFitsNoPlanFailsANewJobAndParksAnOldOne) {
  Enter(Stage::kPlanning);
  run().prepared.emplace();
  run().prepared->status = absl::ResourceExhaustedError("12 MiB are missing on n1/gpu0");
  Decision decision = Now();
  EXPECT_EQ(std::get<Finish>(decision.action).phase, JobPhase::kFailed);
  EXPECT_EQ(decision.reason, "12 MiB are missing on n1/gpu0");
  run().has_run = true;
  EXPECT_TRUE(std::holds_alternative<Wait>(Now().action));
  run().stage = Stage::kIdle;
  run().ranks.clear();
  run().infeasible = run().considered;
  EXPECT_TRUE(std::holds_alternative<Wait>(Now().action));
  node("n1").description.devices[0].memory_bytes += 12 << 20;
  EXPECT_TRUE(std::holds_alternative<BeginSetup>(Now().action)) << "its worker offers more";
  node("n1").description.devices[0] = run().infeasible[0];
  EXPECT_TRUE(std::holds_alternative<Wait>(Now().action));
  AddNode("n3");
  now_ += absl::Seconds(2);
  EXPECT_TRUE(std::holds_alternative<BeginSetup>(Now().action));
}

TEST_F(DecideTest, DevicesWithoutWhichThereIsAPlanAreLeftOut) {
  Enter(Stage::kPlanning);
  run().prepared.emplace();
  run().prepared->status = absl::ResourceExhaustedError("12 MiB are missing on n2/gpu0");
  run().prepared->too_small = {DeviceId("n2/gpu0")};
  const Decision decision = Now();
  ASSERT_TRUE(std::holds_alternative<LeaveOutDevices>(decision.action)) << decision.reason;
  EXPECT_EQ(std::get<LeaveOutDevices>(decision.action).devices, run().prepared->too_small);
}

TEST_F(DecideTest, MembershipChangeDuringPlanningBeginsAgain) {
  Enter(Stage::kPlanning);
  AddNode("n3");
  EXPECT_TRUE(std::holds_alternative<AbandonSetup>(Now().action));
}

// As devices "n-2/gpu0" comes before "n/gpu0", as names "n" before "n-2".
TEST_F(DecideTest, NodesThatOfferOtherDevicesAreSaidOnceWhateverTheyAreCalled) {
  AddNode("n"), AddNode("n-2");
  Enter(Stage::kPlanning);
  for (const char* name : {"n", "n-2"}) node(name).description.devices[0].id = DeviceId(std::string(name) + "/gpu1");
  const Decision decision = Now();
  EXPECT_TRUE(std::holds_alternative<AbandonSetup>(decision.action));
  EXPECT_EQ(decision.reason, "planning begins again: n, n-2 offer other devices now");
}

TEST_F(DecideTest, RanksThatAlwaysDieBeforeTheFirstStepEndAJobThatNeverRan) {
  run().trouble = {Remedy::kRestart, config_.max_first_deaths, config_.max_first_deaths, "the rank on n1/gpu0 died"};
  EXPECT_EQ(std::get<Finish>(Now().action).phase, JobPhase::kFailed);
  run().has_run = true;
  run().stage_since = now_;
  EXPECT_TRUE(std::holds_alternative<Wait>(Now().action));
}

TEST_F(DecideTest, APauseIsWaitedForAndSaid) {
  run().trouble = {Remedy::kReplan, 3, 0, "the ranks lost each other"};
  run().stage_since = now_;
  EXPECT_TRUE(std::holds_alternative<Wait>(Now().action));
  EXPECT_EQ(Now().reason, "the ranks lost each other; tried again after 2 s");
  now_ += absl::Seconds(2);
  EXPECT_TRUE(std::holds_alternative<BeginSetup>(Now().action));
}

TEST_F(DecideTest, PlanningHasALimit) {
  Enter(Stage::kPlanning);
  now_ += config_.planning_timeout;
  EXPECT_TRUE(std::holds_alternative<KeepOn>(Now().action));
  now_ += absl::Seconds(1);
  ASSERT_TRUE(std::holds_alternative<Finish>(Now().action));
  EXPECT_NE(Now().reason.find("took longer than 600 s"), std::string::npos) << Now().reason;
  run().has_run = true;
  EXPECT_TRUE(std::holds_alternative<RetryLater>(Now().action)) << "a job that has run is tried again";
}

TEST_F(DecideTest, AStartThatNobodyAnswersEnds) {
  Enter(Stage::kStarting);
  run().ranks[0].ready = true;
  run().resume_bytes = 60 * config_.slowest_restore_bytes_per_second;
  now_ += config_.starting_timeout + absl::Seconds(60);
  EXPECT_TRUE(std::holds_alternative<KeepOn>(Now().action)) << "a large checkpoint is read meanwhile";
  now_ += absl::Seconds(1);
  const Decision decision = Now();
  ASSERT_TRUE(std::holds_alternative<EndEpoch>(decision.action));
  EXPECT_EQ(std::get<EndEpoch>(decision.action).ending, Ending::kReplan);
  EXPECT_EQ(decision.reason, "not every rank was ready within 180 s; nothing is heard of n2/gpu0");
}

}  // namespace
}  // namespace motley::coordinator
