#include "coordinator/state/sender.h"

#include <gtest/gtest.h>

#include <limits>

#include "common/session/rendezvous_key.h"

namespace motley::coordinator {
namespace {

// Ranks 0 and 1 on n1 and n2, in epoch 3 of job "j", after step 4; n3 takes no part.
class SenderTest : public testing::Test {
 protected:
  SenderTest() {
    JobRecord job;
    job.id = JobId("j");
    job.uid = JobUid(std::string(32, '1'));
    job.config.training.steps = 100;
    job.config.checkpoint.folder = "/c";
    job.epoch = Epoch(3);
    job.step = 4;
    state_.jobs[job.id] = job;
    JobRun& run = state_.run.emplace();
    run.job = job.id;
    run.stage = Stage::kRunning;
    run.first_step = 2;
    run.epoch_steps = 2;
    run.ranks = {{DeviceId("n1/gpu0"), 1, 0}, {DeviceId("n2/gpu0"), 1, 0}};
    run.ranks_in_order = true;
  }
  template <typename Report>
  static Report Make() {
    Report report;
    report.job = JobId("j");
    report.epoch = Epoch(3);
    return report;
  }
  Standing::Kind Of(const char* node, const WorkerReport& report) { return StandingOf(state_, NodeName(node), report).kind; }
  static StepReport Step(int rank, int64_t step) {
    StepReport report = Make<StepReport>();
    report.rank = rank;
    report.stats.step = step;
    return report;
  }
  static CheckpointReport Checkpoint(int64_t step, const std::string& folder) {
    CheckpointReport report = Make<CheckpointReport>();
    report.step = step;
    report.folder = folder;
    return report;
  }

  ClusterState state_;
};

TEST_F(SenderTest, AStepFollowsTheOneBeforeAndComesFromItsRanksNode) {
  EXPECT_EQ(Of("n1", Step(0, 5)), Standing::kOwn);
  EXPECT_EQ(Of("n2", Step(1, 5)), Standing::kOwn);
  EXPECT_EQ(Of("n2", Step(0, 5)), Standing::kForeign) << "rank 0 is on n1";
  EXPECT_EQ(Of("n3", Step(1, 5)), Standing::kForeign);
  EXPECT_EQ(Of("n1", Step(2, 5)), Standing::kForeign) << "there is no rank 2";
  EXPECT_EQ(Of("n1", Step(0, 999999999)), Standing::kForeign);
  EXPECT_EQ(Of("n1", Step(0, 4)), Standing::kForeign) << "twice";
  EXPECT_EQ(Of("n1", Step(0, 0)), Standing::kForeign);
  EXPECT_EQ(Of("n1", Step(0, 6)), Standing::kGap);
}

// The step was made, and the next one follows it.
TEST_F(SenderTest, AStepWhoseLossIsNotFiniteIsAStep) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  StepReport report = Step(0, 5);
  report.stats.validation_loss = kNan;
  EXPECT_EQ(Of("n1", report), Standing::kOwn);
  report.stats.loss = std::numeric_limits<double>::infinity();
  report.stats.grad_norm = kNan;
  EXPECT_EQ(Of("n1", report), Standing::kOwn);
}

TEST_F(SenderTest, ATimeThatIsNotFiniteIsNone) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  StepReport report = Step(0, 5);
  report.stats.step_seconds = kNan;
  EXPECT_EQ(Of("n1", report), Standing::kForeign);
  report = Step(1, 5);
  report.lanes.bubble = kNan;
  EXPECT_EQ(Of("n2", report), Standing::kForeign);
  report = Step(1, 5);
  report.lanes.busy.back() = kNan;
  EXPECT_EQ(Of("n2", report), Standing::kForeign);
}

TEST_F(SenderTest, AfterABrokenSessionAStepOnlyHasToBeLater) {
  state_.run->stage = Stage::kStopping;
  EXPECT_EQ(Of("n1", Step(0, 9)), Standing::kOwn);
  EXPECT_EQ(Of("n1", Step(0, 4)), Standing::kOwn) << "the newest one again";
  EXPECT_EQ(Of("n1", Step(0, 3)), Standing::kForeign);
  state_.run->stage = Stage::kIdle;  // a restarted coordinator does not know which rank was where
  state_.run->ranks_in_order = false;
  EXPECT_EQ(Of("n2", Step(0, 9)), Standing::kOwn);
  EXPECT_EQ(Of("n3", Step(0, 9)), Standing::kForeign);
}

TEST_F(SenderTest, WhatIsOldIsNobodysFault) {
  StepReport report = Step(0, 999999999);
  report.epoch = Epoch(2);
  EXPECT_EQ(Of("n3", report), Standing::kOwn);
  state_.run->ranks.clear();
  EXPECT_EQ(Of("n3", Step(0, 999999999)), Standing::kOwn);
}

TEST_F(SenderTest, ACheckpointIsOfAStepThatWasDoneAndInTheJobsFolder) {
  EXPECT_EQ(Of("n1", Checkpoint(4, "/c/j/step-00000004-gen-3")), Standing::kOwn);
  EXPECT_EQ(Of("n2", Checkpoint(4, "/c/j/step-00000004-gen-3")), Standing::kForeign) << "rank 0 is on n1";
  EXPECT_EQ(Of("n1", Checkpoint(4, "/c/k/step-00000004-gen-3")), Standing::kForeign);
  // Another cluster's job of this id had the name already.
  const std::string own(32, '1'), other(32, '2');
  EXPECT_EQ(Of("n1", Checkpoint(4, "/c/j/step-00000004-gen-3-job-" + own)), Standing::kOwn);
  EXPECT_EQ(Of("n1", Checkpoint(4, "/c/j/step-00000004-gen-3-job-" + other)), Standing::kForeign);
  CheckpointReport said = Checkpoint(4, "/c/j/step-00000004-gen-3");
  said.job_uid = JobUid(own);
  EXPECT_EQ(Of("n1", said), Standing::kOwn);
  said.job_uid = JobUid(other);
  EXPECT_EQ(Of("n1", said), Standing::kForeign);
  EXPECT_EQ(Of("n1", Checkpoint(4, "/c/j/step-00000003-gen-3")), Standing::kForeign);
  EXPECT_EQ(Of("n1", Checkpoint(5, "/c/j/step-00000005-gen-3")), Standing::kForeign) << "not done yet";
  EXPECT_EQ(Of("n1", Checkpoint(1, "/c/j/step-00000001-gen-3")), Standing::kForeign) << "of an older epoch";
}

TEST_F(SenderTest, BlameIsOfADeviceOfTheEpochAndSaidByRank0) {
  CheckpointFailedReport failed = Make<CheckpointFailedReport>();
  EXPECT_EQ(Of("n1", failed), Standing::kOwn);
  failed.blamed = DeviceId("n2/gpu0");
  EXPECT_EQ(Of("n1", failed), Standing::kOwn);
  EXPECT_EQ(Of("n2", failed), Standing::kForeign);
  failed.blamed = DeviceId("n3/gpu0");
  EXPECT_EQ(Of("n1", failed), Standing::kForeign) << "it takes no part";
}

TEST_F(SenderTest, DevicesRanksAndKeysAreTheirNodes) {
  RankReport rank = Make<RankReport>();
  rank.rank = 1;
  rank.device = DeviceId("n2/gpu0");
  EXPECT_EQ(Of("n2", rank), Standing::kOwn);
  EXPECT_EQ(Of("n1", rank), Standing::kForeign);
  const DeviceId own("n2/gpu0"), other("n1/gpu0");
  rank.transports = {{0, {own, other}, Transport::kTcp, "", {}}, {{}, {own, other}, Transport::kTcp, "", {}}};
  EXPECT_EQ(Of("n2", rank), Standing::kOwn);
  rank.transports[1].group = 0;
  EXPECT_EQ(Of("n2", rank), Standing::kForeign) << "twice";
  rank.transports[1] = {1, {other, own}, Transport::kTcp, "", {}};
  EXPECT_EQ(Of("n2", rank), Standing::kForeign) << "another rank's to say";
  rank.transports[1] = {{}, {own}, Transport::kTcp, "", {}};
  EXPECT_EQ(Of("n2", rank), Standing::kForeign) << "a hand-over to nobody";
  rank.transports[1] = {1, {own, DeviceId("n3/gpu0")}, Transport::kTcp, "", {}};
  EXPECT_EQ(Of("n2", rank), Standing::kForeign) << "n3 takes no part";
  rank.transports.clear();
  rank.rank = 0;
  EXPECT_EQ(Of("n2", rank), Standing::kForeign) << "it has rank 1";
  KvSetReport set = Make<KvSetReport>();
  set.key = RendezvousKey("train/3/", "peer", 1);
  EXPECT_EQ(Of("n2", set), Standing::kOwn);
  EXPECT_EQ(Of("n1", set), Standing::kForeign) << "it would stand in for rank 1";
  EXPECT_EQ(Of("n3", set), Standing::kForeign);
  set.key = RendezvousKey("train/3/", "nccl", 0, "hand-over-0-1");
  EXPECT_EQ(Of("n1", set), Standing::kOwn);
  EXPECT_EQ(Of("n2", set), Standing::kForeign) << "the first member makes the id";
  set.key = "anything";
  EXPECT_EQ(Of("n1", set), Standing::kForeign);
  KvGetReport get = Make<KvGetReport>();
  EXPECT_EQ(Of("n1", get), Standing::kOwn);
  EXPECT_EQ(Of("n2", get), Standing::kForeign);
  PublishReport publish = Make<PublishReport>();
  EXPECT_EQ(Of("n1", publish), Standing::kOwn);
  publish.rank = -1;
  EXPECT_EQ(Of("n1", publish), Standing::kForeign);
  ProfileReport profile = Make<ProfileReport>();
  profile.compute.resize(1);
  profile.compute[0].device = DeviceId("n1/gpu0");
  EXPECT_EQ(Of("n1", profile), Standing::kOwn);
  EXPECT_EQ(Of("n2", profile), Standing::kForeign);
}

TEST_F(SenderTest, LogLinesAreOfJobsThatRunOrRanThere) {
  LogReport line = Make<LogReport>();
  EXPECT_EQ(Of("n1", line), Standing::kOwn);
  EXPECT_EQ(Of("n3", line), Standing::kForeign);
  state_.run->probes[NodeName("n3")];
  EXPECT_EQ(Of("n3", line), Standing::kOwn) << "it is looked at beside the job";
  line.job = JobId("k");
  EXPECT_EQ(Of("n1", line), Standing::kForeign);
  state_.ran_on[JobId("k")].insert(NodeName("n1"));
  EXPECT_EQ(Of("n1", line), Standing::kOwn);
}

TEST_F(SenderTest, ACardIsOfItsNode) {
  EXPECT_EQ(Of("n1", CardReport{DeviceId("n1/gpu0")}), Standing::kForeign) << "it offers no device";
  state_.nodes[NodeName("n1")].description.devices.resize(1);
  state_.nodes[NodeName("n1")].description.devices[0].id = DeviceId("n1/gpu0");
  EXPECT_EQ(Of("n1", CardReport{DeviceId("n1/gpu0")}), Standing::kOwn);
  EXPECT_EQ(Of("n2", CardReport{DeviceId("n1/gpu0")}), Standing::kForeign);
}

TEST(ReportKind, NamesEveryAlternative) {
  EXPECT_EQ(ReportKind(HeartbeatReport()), "heartbeat");
  EXPECT_EQ(ReportKind(StepReport()), "step");
  EXPECT_EQ(ReportKind(CheckpointReport()), "checkpoint");
  EXPECT_EQ(ReportKind(LeavingReport()), "leaving");
  EXPECT_EQ(ReportKind(CardReport()), "card");
}

}  // namespace
}  // namespace motley::coordinator
