// The rows of the table in docs/use/errors.md: what follows each failure, and how long the next epoch waits.
#include <map>

#include "common/base/altered_way.h"
#include "common/base/version.h"
#include "coordinator/epoch/altered_blame.h"
#include "coordinator/epoch/epoch_driver.h"
#include "coordinator/epoch/second_opinion.h"
#include "coordinator/epoch/setup.h"
#include "coordinator/epoch/steps.h"
#include "coordinator/state/membership.h"
#include "tests/coordinator/core/core_fixture.h"

namespace motley::coordinator {
namespace {

class ErrorTable : public CoreTest {
 protected:
  ErrorTable() {
    AddNode("n1");
    AddNode("n2");
    AddRun("a").has_run = true;
    job().config.training.steps = 100;
    job().phase = JobPhase::kRunning;
    core_->state.membership_changed = clock_.Now() - absl::Minutes(1);
  }
  JobRecord& job() { return core_->state.jobs.at(JobId("a")); }
  static Failure Of(FailureKind kind, Fault fault = Fault::kOurs, const std::string& damaged = "") {
    return {absl::ZeroDuration(), kind, NodeName("n2"), DeviceId("n2/gpu0"), "words", fault, damaged};
  }
  // An epoch of both nodes made `steps` steps and then failed. The seconds until the next set-up, or -1: there is none.
  double SecondsAfter(Failure failure, int64_t steps = 0) {
    JobRun& run = *core_->state.run;
    run.stage = Stage::kStarting;
    run.stage_since = clock_.Now();
    run.considered = UsableDevices(core_->state, run);
    run.ranks = {{DeviceId("n1/gpu0"), 1, 0}, {DeviceId("n2/gpu0"), 1, 0}};
    run.ranks_in_order = true;
    run.epoch_steps = steps;
    failure.at = clock_.Now() - absl::Minutes(1);  // no further word is waited for
    run.failures = {failure};
    Drive(*core_);
    if (run.stage != Stage::kStopping) ADD_FAILURE() << "the epoch goes on: " << job().reason;
    for (RankRun& rank : run.ranks) rank.ended = true;
    const absl::Duration ended = clock_.Now();
    waiting_ = "";
    while (clock_.Now() - ended < absl::Minutes(2)) {
      Drive(*core_);
      if (!core_->state.run) return -1;
      if (run.stage == Stage::kStorage) return absl::ToDoubleSeconds(clock_.Now() - ended);
      if (job().phase == JobPhase::kWaiting) waiting_ = job().reason;
      clock_.Advance(absl::Milliseconds(250));
    }
    return -1;
  }
  // A rank of an epoch of three says that a message was altered.
  void Altered(const std::string& sender, const std::string& receiver, const std::string& reporter, int64_t steps = 0) {
    BeginEpochOfThree();
    JobRun& run = *core_->state.run;
    run.epoch_steps = steps;
    run.proven = run.storage_ok;
    Failure failure = Of(FailureKind::kPeerLost, Fault::kPeer);
    failure.node = NodeName(reporter);
    failure.device = DeviceId(reporter + "/gpu0");
    failure.message = "all-gather: lost it: " + AlteredOnTheWay({sender + "/gpu0", receiver + "/gpu0"}) + ": message 7";
    failure.at = clock_.Now() - absl::Minutes(1);
    run.failures = {failure};
    Drive(*core_);
    ASSERT_EQ(run.stage, Stage::kStopping) << job().reason;
    EXPECT_NE(job().reason.find("a message between ranks was altered; said by the rank on " + reporter), std::string::npos)
        << job().reason;
    for (RankRun& rank : run.ranks) rank.ended = true;
    Drive(*core_);
  }
  // What a coordinator counts that is started now.
  std::vector<Way> Recounted() {
    std::vector<Way>& ways = core_->state.run->altered_ways;
    ways.clear();
    EXPECT_TRUE(RecountAltered(*core_).ok());
    return ways;
  }
  void BeginEpochOfThree() {
    JobRun& run = *core_->state.run;
    run.stage = Stage::kRunning;
    run.stage_since = clock_.Now();
    run.ranks.clear();
    for (const char* device : {"n1/gpu0", "n2/gpu0", "n3/gpu0"}) run.ranks.push_back({DeviceId(device), 1, 0});
    run.ranks_in_order = true;
    for (const char* node : {"n1", "n2", "n3"}) run.storage_ok[NodeName(node)] = 1;
    run.considered = UsableDevices(core_->state, run);
  }
  std::vector<double> SecondsAfterEach(const Failure& failure, int times) {
    std::vector<double> seconds;
    for (int i = 0; i < times; ++i) seconds.push_back(SecondsAfter(failure));
    return seconds;
  }
  int CountEvents(const std::string& kind) {
    const auto events = store_->EventsAfter(JobId("a"), 0, 1000);
    EXPECT_TRUE(events.ok()) << events.status();
    return static_cast<int>(std::count_if(events->begin(), events->end(), [&](const EventRecord& e) { return e.kind == kind; }));
  }

  std::string waiting_;  // the reason while it was paused
};

TEST_F(ErrorTable, ConnectivityWaitsFiveSecondsAtMostAndNeverFails) {
  const std::vector<double> expected = {0.5, 1, 2, 4, 5, 5, 5};
  EXPECT_EQ(SecondsAfterEach(Of(FailureKind::kPeerLost), 7), expected);
  EXPECT_NE(waiting_.find("tried again after 5 s"), std::string::npos) << waiting_;
  EXPECT_EQ(SecondsAfter(Of(FailureKind::kPeerLost), 3), 0) << "a step was made: the row begins again";
  EXPECT_EQ(SecondsAfterEach(Of(FailureKind::kNodeLost), 7), expected);
  EXPECT_EQ(SecondsAfterEach(Of(FailureKind::kFailed, Fault::kPeer), 50).back(), 5);
}

TEST_F(ErrorTable, APauseIsWaitedForOnceAlsoWhereTheSetUpBeginsAgain) {
  for (int i = 0; i < 4; ++i) (void)SecondsAfter(Of(FailureKind::kPeerLost));
  EXPECT_EQ(SecondsAfter(Of(FailureKind::kPeerLost)), 5);
  JobRun& run = *core_->state.run;
  ASSERT_EQ(run.stage, Stage::kStorage);
  AddNode("n3");  // the set-up is abandoned for it
  const absl::Duration begun = clock_.Now();
  Drive(*core_);
  for (int i = 0; i < 100 && run.considered.size() < 3; ++i) clock_.Advance(absl::Milliseconds(50)), Drive(*core_);
  EXPECT_EQ(run.considered.size(), 3u);
  EXPECT_EQ(clock_.Now() - begun, absl::ZeroDuration()) << job().reason;
}

TEST_F(ErrorTable, MeasuringIsTriedAgainWhereTheNetworkFailedAndEndsAJobWhereTheDeviceDid) {
  EXPECT_EQ(SecondsAfterEach(Of(FailureKind::kProfile, Fault::kPeer), 3), (std::vector<double>{0.5, 1, 2}));
  EXPECT_EQ(SecondsAfter(Of(FailureKind::kProfile)), -1);
  EXPECT_EQ(core_->state.jobs.at(JobId("a")).phase, JobPhase::kFailed);
}

// Nobody knows at which end it happens; the third time without a checkpoint between the job goes on without one of the two.
TEST_F(ErrorTable, AWayThatAltersMessagesIsGivenUp) {
  AddNode("n3");
  std::map<DeviceId, std::string>& left_out = core_->state.run->left_out;
  Altered("n2", "n1", "n1");
  Altered("n1", "n2", "n2", 3);  // steps alone are no progress that lasts
  OnCheckpoint(*core_, NodeName("n1"), {JobId("a"), job().epoch, 90, "/checkpoints/a/step-00000090-gen-3", 1, 1});
  Altered("n2", "n1", "n1");
  Altered("n3", "n1", "n2");  // a third one's word
  Altered("n4", "n1", "n1");  // of nobody in the epoch
  Altered("n3", "n2", "n2");
  EXPECT_TRUE(left_out.empty());
  Altered("n2", "n3", "n3");
  ASSERT_EQ(left_out.size(), 1u);
  EXPECT_EQ(left_out.begin()->first, DeviceId("n2/gpu0")) << "it is at an end of all of them";
  EXPECT_NE(left_out.begin()->second.find("what n2/gpu0 sent to n3/gpu0 was altered on the way"), std::string::npos);
  EXPECT_EQ(CountEvents("device_left_out"), 1);
  EXPECT_TRUE(core_->state.run->altered_ways.empty());
}

TEST_F(ErrorTable, ARestartCountsAlteredMessagesAgain) {
  AddNode("n3");
  job().epoch = Epoch(1);
  Batch batch;
  batch.jobs.push_back(job());
  batch.epochs.push_back(
      {JobId("a"), Epoch(1), 0, {{DeviceId("n1/gpu0"), 1}, {DeviceId("n2/gpu0"), 1}, {DeviceId("n3/gpu0"), 1}}});
  ASSERT_TRUE(store_->Commit(batch).ok());
  const Way there = {NodeName("n2"), NodeName("n1")}, back = {NodeName("n1"), NodeName("n2")};
  EXPECT_EQ(Recounted(), std::vector<Way>());
  Altered("n2", "n1", "n1");
  EXPECT_EQ(Recounted(), (std::vector<Way>{there}));
  OnCheckpoint(*core_, NodeName("n1"), {JobId("a"), job().epoch, 90, "/checkpoints/a/step-00000090-gen-3", 1, 1});
  EXPECT_EQ(Recounted(), std::vector<Way>());
  Altered("n2", "n1", "n1");
  Altered("n3", "n1", "n2");  // a third one's word
  Altered("n4", "n1", "n1");  // of nobody in the epoch
  Altered("n1", "n2", "n2");
  EXPECT_EQ(Recounted(), (std::vector<Way>{there, back}));

  // The worker that the newest epoch ran on comes back, and then another one in its place.
  NodeDescription node;
  node.protocol = kSessionProtocol;
  node.name = NodeName("n2"), node.incarnation = 1;
  BeginEpochOfThree();
  ForgetAltered(*core_->state.run, node);
  EXPECT_EQ(core_->state.run->altered_ways.size(), 2u);
  Altered("n3", "n2", "n2");
  EXPECT_EQ(core_->state.run->left_out.size(), 1u) << "the third, whoever counted the first two";
  EXPECT_EQ(Recounted(), std::vector<Way>()) << "all were of the node that is left out";
  core_->state.run->altered_ways = {there};
  node.incarnation = 2;
  ForgetAltered(*core_->state.run, node);
  EXPECT_TRUE(core_->state.run->altered_ways.empty());
}

// A device that failed while it was measured aborts the meeting, and its peers may be heard first.
TEST(CauseTest, AMeasurementThatFailedByItselfIsTheCauseOfThoseThatLostIt) {
  const auto profile = [](const char* node, const char* words, Fault fault) {
    return Failure{absl::ZeroDuration(), FailureKind::kProfile, NodeName(node), DeviceId(), words, fault, ""};
  };
  const std::vector<Failure> failures = {profile("n1", "the other end closed the connection", Fault::kPeer),
                                         profile("n2", "lost n3/gpu0: Connection timed out", Fault::kPeer),
                                         profile("n3", "out of memory", Fault::kOurs)};
  EXPECT_EQ(FirstCause(absl::Seconds(9), failures, {})->message, "out of memory");
  EXPECT_EQ(FirstCause(absl::Seconds(9), {failures[0], failures[1]}, {})->message, "lost n3/gpu0: Connection timed out");
}

TEST_F(ErrorTable, FilesAreWaitedForAlsoWhenStepsWereMade) {
  const Failure failure = Of(FailureKind::kFailed, Fault::kStorage);
  EXPECT_EQ(SecondsAfterEach(failure, 7), (std::vector<double>{1, 2, 4, 8, 15, 30, 30}));
  EXPECT_EQ(SecondsAfter(failure, 3), 1);
  EXPECT_EQ(waiting_, "the rank on n2/gpu0 cannot use its files now: words; tried again after 1 s");
}

// The ranks know whose folder it is: not the words, and not who says it, decide.
TEST_F(ErrorTable, TheNodeThatIsToBlameForThreeSavesInARowIsLeftOut) {
  AddNode("n3");
  BeginEpochOfThree();
  const auto fail = [&](int64_t step, const std::string& blamed) {
    OnCheckpointFailed(*core_, NodeName("n1"), {JobId("a"), job().epoch, step, "words", DeviceId(blamed)});
  };
  JobRun& run = *core_->state.run;
  fail(10, "n3/gpu0");
  fail(10, "n3/gpu0");  // the same save, tried again
  fail(20, "n3/gpu0");
  fail(30, "");  // nobody's
  fail(40, "n3/gpu0");
  fail(50, "n3/gpu0");
  fail(60, "n2/gpu0");
  fail(70, "n3/gpu0");
  fail(80, "n3/gpu0");
  OnCheckpoint(*core_, NodeName("n1"), {JobId("a"), job().epoch, 90, "/checkpoints/a/step-00000090-gen-3", 1, 1});
  fail(100, "n3/gpu0");
  fail(110, "n3/gpu0");
  EXPECT_TRUE(run.left_out.empty() && run.failures.empty());
  Drive(*core_);
  EXPECT_EQ(run.stage, Stage::kRunning);
  fail(120, "n3/gpu0");
  ASSERT_EQ(run.left_out.size(), 1u);
  EXPECT_NE(run.left_out[DeviceId("n3/gpu0")].find("third time in a row"), std::string::npos);
  EXPECT_EQ(CountEvents("device_left_out"), 1);
  Drive(*core_);
  EXPECT_EQ(run.stage, Stage::kStopping) << job().reason;
  EXPECT_FALSE(run.saving) << "it cannot be saved with that node";
  const auto events = store_->EventsAfter(JobId("a"), 0, 1000);
  ASSERT_TRUE(events.ok());
  EXPECT_TRUE(std::any_of(events->begin(), events->end(), [](const EventRecord& e) {
    return e.kind == "checkpoint_failed" && e.node == NodeName("n3") && e.device == DeviceId("n3/gpu0");
  }));
}

TEST_F(ErrorTable, OfTwoNodesNobodyIsBlamed) {
  BeginEpochOfThree();
  core_->state.run->ranks.pop_back();
  for (int64_t step = 10; step < 100; step += 10) {
    OnCheckpointFailed(*core_, NodeName("n1"), {JobId("a"), job().epoch, step, "words", DeviceId("n2/gpu0")});
  }
  EXPECT_TRUE(core_->state.run->left_out.empty());
}

// The coordinator has just found the checkpoint, and the ranks of the other nodes read it.
TEST_F(ErrorTable, ANodeThatCannotReadTheCheckpointThreeTimesIsLeftOut) {
  AddNode("n3");
  Failure failure = Of(FailureKind::kFailed, Fault::kStorage);
  for (const int nodes : {2, 3}) {
    for (int time = 0; time < 3; ++time) {
      EXPECT_TRUE(core_->state.run->left_out.empty());
      BeginEpochOfThree();
      JobRun& run = *core_->state.run;
      run.stage = Stage::kStarting;
      run.resumed_from = "/checkpoints/a/step-00000010-gen-3";
      if (nodes == 2) run.ranks.pop_back();
      job().epoch = Epoch(job().epoch.value() + 1);
      failure.at = clock_.Now();
      run.failures = {failure};
      Drive(*core_);
      ASSERT_EQ(run.stage, Stage::kStopping);
      for (RankRun& rank : run.ranks) rank.ended = true;
      Drive(*core_);
    }
    EXPECT_EQ(core_->state.run->left_out.contains(DeviceId("n2/gpu0")), nodes == 3);
  }
}

TEST_F(ErrorTable, ADamagedCheckpointIsLeftOutAtOnceWhenASecondReaderSaysSo) {
  JobRun& run = *core_->state.run;
  run.storage_ok = run.proven = {{NodeName("n1"), 1}, {NodeName("n2"), 1}};
  const Failure failure = Of(FailureKind::kFailed, Fault::kDamage, "/c/a/step-00000002-gen-3");
  EXPECT_EQ(SecondsAfter(failure), -1) << "nothing begins before node n1 has answered";
  ASSERT_TRUE(run.suspicion);
  EXPECT_EQ(run.suspicion->reader, NodeName("n1"));
  StorageReport answer{JobId("a"), job().epoch, "rank-0.bin was altered", {}, true, "of another question"};
  answer.error_code = absl::StatusCode::kDataLoss;
  EXPECT_FALSE(OnSecondReading(*core_, NodeName("n1"), answer));
  answer.check_id = run.suspicion->check_id;
  EXPECT_FALSE(OnSecondReading(*core_, NodeName("n2"), answer)) << "n1 was asked";
  EXPECT_TRUE(OnSecondReading(*core_, NodeName("n1"), answer));
  Drive(*core_);
  EXPECT_NE(run.stage, Stage::kIdle) << job().reason;
  EXPECT_TRUE(run.damaged.contains("/c/a/step-00000002-gen-3"));
  EXPECT_TRUE(run.left_out.empty());
  EXPECT_EQ(CountEvents("checkpoint_skipped"), 1);
}

TEST_F(ErrorTable, WhatOneMachineRefusesLeavesItOutAndEndsTheJobWhenAnotherDoesSo) {
  JobRun& run = *core_->state.run;
  AddNode("n3");
  const Failure odd = Of(FailureKind::kFailed, Fault::kNode);
  EXPECT_EQ(SecondsAfter(odd, 3), 0);
  EXPECT_TRUE(run.left_out.contains(DeviceId("n2/gpu0")));
  EXPECT_EQ(CountEvents("device_left_out"), 1);
  run.left_out.clear();  // its worker was started again
  EXPECT_EQ(SecondsAfter(odd, 3), 0) << "the same node says nothing about the others";
  Failure another = odd;
  another.device = DeviceId("n1/gpu0");
  another.node = NodeName("n1");
  EXPECT_EQ(SecondsAfter(another, 3), -1);
  EXPECT_EQ(job().phase, JobPhase::kFailed);
  EXPECT_NE(job().reason.find("words; node n2, which was left out before, said the like"), std::string::npos) << job().reason;
}

// Of five nodes two hold other data; the rank of one was faster to say so.
TEST_F(ErrorTable, OtherDataOnOneMachineHasTheOthersLookAtTheirs) {
  JobRun& run = *core_->state.run;
  job().data.digest = "right";
  for (const char* name : {"n3", "n4", "n5"}) AddNode(name);
  for (const auto& [name, node] : core_->state.nodes) run.storage_ok[name] = 1;
  EXPECT_EQ(SecondsAfter(Of(FailureKind::kFailed, Fault::kNode), 3), 0);
  EXPECT_EQ(core_->state.nodes.at(NodeName("n2")).reason.find("job a goes on without node n2: the rank on n2/gpu0 failed"), 0u);
  ASSERT_EQ(run.storage.size(), 4u);
  for (const char* name : {"n1", "n3", "n4", "n5"}) {
    StorageReport report;
    report.token_seen = true;
    report.data.bytes = 1'000'000;
    report.data.digest = name == std::string("n4") ? "wrong" : "right";
    OnStorageReport(*core_, NodeName(name), report);
  }
  Drive(*core_);
  EXPECT_TRUE(run.left_out.contains(DeviceId("n4/gpu0"))) << job().reason;
  EXPECT_EQ(run.considered.size(), 3u) << job().reason;
  EXPECT_EQ(run.stage, Stage::kStorage);
  EXPECT_EQ(NodeStateName(core_->state, core_->state.nodes.at(NodeName("n4"))), "refused");
  EXPECT_EQ(CountEvents("device_left_out"), 2);
}

TEST_F(ErrorTable, WhatTheOnlyMachineRefusesEndsTheJob) {
  core_->state.nodes.at(NodeName("n1")).drained = true;
  EXPECT_EQ(SecondsAfter(Of(FailureKind::kFailed, Fault::kNode), 3), -1);
  EXPECT_EQ(job().phase, JobPhase::kFailed);
}

TEST_F(ErrorTable, MemoryThatRunsOutIsPlannedAgainAtOnceHoweverOften) {
  EXPECT_EQ(SecondsAfterEach(Of(FailureKind::kFailed, Fault::kMemory), 5), (std::vector<double>{0, 0, 0, 0, 0}));
  EXPECT_EQ(SecondsAfter(Of(FailureKind::kFailed, Fault::kMemory), 3), 0);
  EXPECT_TRUE(core_->state.run->left_out.empty());
}

TEST_F(ErrorTable, ADeviceWhoseRankDiesThreeTimesIsLeftOutAndWithoutDevicesTheJobWaits) {
  EXPECT_EQ(SecondsAfterEach(Of(FailureKind::kDied), 3), (std::vector<double>{0.5, 1, 2}));
  EXPECT_EQ(CountEvents("device_left_out"), 1);
  Failure other = Of(FailureKind::kHung);
  other.device = DeviceId("n1/gpu0");
  other.node = NodeName("n1");
  EXPECT_EQ(SecondsAfterEach(other, 2), (std::vector<double>{4, 5}));
  EXPECT_EQ(SecondsAfter(other), -1);
  EXPECT_EQ(job().phase, JobPhase::kWaiting) << job().reason;
}

TEST_F(ErrorTable, WhatRepeatsByItselfEndsTheJob) {
  for (const Failure& failure :
       {Of(FailureKind::kFailed), Of(FailureKind::kNonFinite), Of(FailureKind::kFailed, Fault::kDamage)}) {
    AddRun("a").has_run = true;
    job().phase = JobPhase::kRunning;
    EXPECT_EQ(SecondsAfter(failure), -1);
    EXPECT_EQ(job().phase, JobPhase::kFailed);
    EXPECT_NE(job().reason.find("words"), std::string::npos) << job().reason;
  }
}

TEST_F(ErrorTable, AJobThatNeverRanEndsWhenItsRanksAlwaysDie) {
  core_->state.run->has_run = false;
  AddNode("n3");
  Failure failure = Of(FailureKind::kDied);
  for (int death = 1; death <= 6; ++death) {
    EXPECT_EQ(SecondsAfter(failure) < 0, death == 6) << death;
    if (death == 3) failure.device = DeviceId("n1/gpu0");
  }
  EXPECT_EQ(job().phase, JobPhase::kFailed);
  EXPECT_NE(job().reason.find("6 times in a row before the first step"), std::string::npos) << job().reason;
}

}  // namespace
}  // namespace motley::coordinator
