// Nodes and coordinators that come and go while a job trains.
#include "tests/common/base/patience.h"
#include "tests/coordinator/rpc/replan_fixture.h"

namespace motley::coordinator {
namespace {

TEST_F(Replan, ALostNodeEndsTheEpochAndTheOthersGoOn) {
  auto n1 = Join("n1"), n2 = Join("n2");
  ASSERT_TRUE(Submit("a", MakeConfig(10)).ok());
  const int64_t epoch = Train(*n1, *n2, 4);
  n2->Drop();
  ASSERT_TRUE(n1->WaitForStop(epoch)) << "the survivors are killed before the next epoch";
  const auto ranks = n1->WaitForStart(epoch);
  ASSERT_EQ(ranks.size(), 1u);
  EXPECT_EQ(ranks[0].device_ids_size(), 1);
  EXPECT_EQ(ranks[0].start_step(), 0) << "there was no checkpoint";
  FinishOn({n1.get()}, 10);
  const std::string line = WaitForEvent("a", "replan");
  EXPECT_NE(line.find("node n2 was lost"), std::string::npos) << line;
  EXPECT_NE(line.find("4 steps repeated"), std::string::npos) << line;
  EXPECT_NE(line.find("on 1 device, pause"), std::string::npos) << line;
}

TEST_F(Replan, AWorkerThatIsStoppedIsALossAlthoughItEndsItsRanksFirst) {
  auto n1 = Join("n1"), n2 = Join("n2");
  ASSERT_TRUE(Submit("a", MakeConfig(10)).ok());
  const int64_t epoch = Train(*n1, *n2, 2);
  n2->SendAll(v1::RankEvent::KIND_FINISHED, "killed: the worker stops");
  n2->Drop();
  n1->SendAll(v1::RankEvent::KIND_PEER_LOST, "connection reset");
  const auto ranks = n1->WaitForStart(epoch);
  ASSERT_FALSE(ranks.empty());
  FinishOn({n1.get()}, 10);
  EXPECT_NE(WaitForEvent("a", "replan").find("node n2 was lost"), std::string::npos);
}

TEST_F(Replan, ADeadRankIsTheCauseAndItsNodeStays) {
  auto n1 = Join("n1"), n2 = Join("n2");
  ASSERT_TRUE(Submit("a", MakeConfig(10)).ok());
  const int64_t epoch = Train(*n1, *n2, 2);
  n1->SendAll(v1::RankEvent::KIND_PEER_LOST, "connection reset");
  n2->SendAll(v1::RankEvent::KIND_DIED, "signal 9");
  const auto ranks = n2->WaitForStart(epoch);
  ASSERT_FALSE(ranks.empty());
  EXPECT_EQ(ranks[0].device_ids_size(), 2);
  EXPECT_EQ(WaitForEvent("a", "rank_lost"), "the rank on n2/gpu0 died: signal 9");
}

TEST_F(Replan, TheExitOfAStalledRankDoesNotHideTheStall) {
  auto n1 = Join("n1"), n2 = Join("n2");
  ASSERT_TRUE(Submit("a", MakeConfig(10)).ok());
  const int64_t epoch = Train(*n1, *n2, 2);
  n2->SendAll(v1::RankEvent::KIND_HUNG, "silent for 3 s");
  n2->SendAll(v1::RankEvent::KIND_DIED, "killed by signal 9");
  ASSERT_FALSE(n2->WaitForStart(epoch).empty());
  EXPECT_EQ(WaitForEvent("a", "rank_hung"), "the rank on n2/gpu0 made no progress: silent for 3 s");
}

TEST_F(Replan, ADeviceWhoseRankDiesThreeTimesIsLeftOut) {
  auto n1 = Join("n1"), n2 = Join("n2");
  ASSERT_TRUE(Submit("a", MakeConfig(10)).ok());
  int64_t epoch = 0;
  for (int death = 0; death < 3; ++death) {
    const auto ranks = n2->WaitForStart(epoch);
    ASSERT_FALSE(ranks.empty());
    ASSERT_FALSE(n1->WaitForStart(epoch).empty());
    epoch = ranks[0].epoch();
    n2->SendAll(v1::RankEvent::KIND_DIED, "signal 11");
  }
  const auto ranks = n1->WaitForStart(epoch);
  ASSERT_FALSE(ranks.empty());
  EXPECT_EQ(ranks[0].device_ids_size(), 1);
  EXPECT_NE(WaitForEvent("a", "device_left_out").find("n2/gpu0: its rank died 3 times in a row, the last time: signal 11"),
            std::string::npos);
}

TEST_F(Replan, DrainSavesFirstAndUndrainBringsTheNodeBack) {
  auto n1 = Join("n1", Saving()), n2 = Join("n2", Saving());
  ASSERT_TRUE(Submit("a", MakeConfig(10)).ok());
  const int64_t epoch = Train(*n1, *n2, 4);
  ASSERT_TRUE(Drain("n2", true).ok());
  auto ranks = n1->WaitForStart(epoch);
  ASSERT_FALSE(ranks.empty());
  EXPECT_EQ(ranks[0].device_ids_size(), 1);
  EXPECT_EQ(ranks[0].start_step(), 4);
  EXPECT_NE(ranks[0].resume_from().find(CheckpointFolderName(4, epoch)), std::string::npos);
  n1->SendAll(v1::RankEvent::KIND_READY);
  n1->Step(5);
  EXPECT_NE(WaitForEvent("a", "replan").find("0 steps repeated"), std::string::npos);
  ASSERT_TRUE(Drain("n2", false).ok());
  ranks = n1->WaitForStart(ranks[0].epoch());
  ASSERT_FALSE(ranks.empty());
  EXPECT_EQ(ranks[0].device_ids_size(), 2);
  EXPECT_EQ(ranks[0].start_step(), 5);
  EXPECT_EQ(Drain("n9", true).error_code(), grpc::StatusCode::NOT_FOUND);
}

// Whoever may write there could end a job that has trained.
TEST_F(Replan, RanksThatDoNotReachEachOtherWaitAndGoOn) {
  config_.driver.cause.peer_lost_wait = absl::Milliseconds(50);
  Start();
  auto n1 = Join("n1"), n2 = Join("n2");
  ASSERT_TRUE(Submit("a", MakeConfig(10)).ok());
  int64_t epoch = 0;
  for (int attempt = 0; attempt < 2; ++attempt) {
    const auto ranks = n1->WaitForStart(epoch);
    ASSERT_FALSE(ranks.empty());
    ASSERT_FALSE(n2->WaitForStart(epoch).empty());
    epoch = ranks[0].epoch();
    n1->Fail(v1::FAULT_PEER, "no connection to 10.0.0.2");
    const std::string reason = WaitForState("a", v1::JOB_STATE_WAITING).reason();
    EXPECT_NE(reason.find("no connection to 10.0.0.2"), std::string::npos) << reason;
    EXPECT_NE(reason.find("tried again after"), std::string::npos) << reason;
  }
  ASSERT_FALSE(n1->WaitForStart(epoch).empty() || n2->WaitForStart(epoch).empty());
  FinishOn({n1.get(), n2.get()}, 10);
}

// n1's rank said so; n2 reads the file before anybody is blamed.
TEST_F(Replan, ARankOfAJobThatIsOverIsToldToEnd) {
  auto n1 = Join("n1"), n2 = Join("n2");
  ASSERT_TRUE(Submit("a", MakeConfig(4)).ok());
  const int64_t epoch = Train(*n1, *n2, 2);
  FinishOn({n1.get(), n2.get()}, 4);
  EXPECT_FALSE(n1->HasStopped(epoch));
  n1->Step(3);
  EXPECT_TRUE(n1->WaitForStop(epoch));
}

TEST_F(Replan, ASnapshotEndsWithWhatIsKept) {
  auto n1 = Join("n1"), n2 = Join("n2");
  ASSERT_TRUE(Submit("a", MakeConfig(10)).ok());
  Train(*n1, *n2, 3);
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + Patience(absl::Seconds(20))));
  v1::WatchJobRequest request;
  request.set_job_id("a");
  request.set_snapshot(true);
  auto reader = stub_->WatchJob(&context, request);
  v1::JobUpdate update;
  int64_t newest = 0;
  while (reader->Read(&update)) newest = update.has_step() ? update.step().step() : newest;
  EXPECT_TRUE(reader->Finish().ok()) << "the stream ended by itself";
  EXPECT_EQ(newest, 3);
}

TEST_F(Replan, ANodeThatJoinsIsUsed) {
  auto n1 = Join("n1", Saving()), n2 = Join("n2", Saving());
  ASSERT_TRUE(Submit("a", MakeConfig(10)).ok());
  const int64_t epoch = Train(*n1, *n2, 3);
  auto n3 = Join("n3");
  const auto ranks = n3->WaitForStart(epoch);
  ASSERT_FALSE(ranks.empty());
  EXPECT_EQ(ranks[0].device_ids_size(), 3);
  EXPECT_EQ(ranks[0].start_step(), 3);
  ASSERT_FALSE(n1->WaitForStart(epoch).empty());
  ASSERT_FALSE(n2->WaitForStart(epoch).empty());
  FinishOn({n1.get(), n2.get(), n3.get()}, 10);
  EXPECT_NE(WaitForEvent("a", "replan").find("n3 can be used now"), std::string::npos);
}

TEST_F(Replan, TheLastWorkerLostMakesTheJobWaitUntilOneJoins) {
  auto n1 = Join("n1"), n2 = Join("n2");
  ASSERT_TRUE(Submit("a", MakeConfig(10)).ok());
  const int64_t epoch = Train(*n1, *n2, 1);
  n1->Drop();
  n2->Drop();
  EXPECT_NE(WaitForState("a", v1::JOB_STATE_WAITING).reason().find("2 nodes are lost"), std::string::npos);
  FakeWorker::Options again;
  again.incarnation = 2;
  auto n3 = Join("n1", again);
  const auto ranks = n3->WaitForStart(epoch);
  ASSERT_FALSE(ranks.empty());
  FinishOn({n3.get()}, 10);
}

TEST_F(Replan, ARestartedCoordinatorKnowsItsJobsAndResumesTheRunningOne) {
  auto n1 = Join("n1"), n2 = Join("n2");
  ASSERT_TRUE(Submit("a", MakeConfig(10)).ok());
  ASSERT_TRUE(Submit("b", MakeConfig(10)).ok());
  const int64_t epoch = Train(*n1, *n2, 2);
  Start();
  v1::Job job;
  EXPECT_TRUE(Submit("b", MakeConfig(10), &job).ok()) << "acknowledged: known, and still idempotent";
  EXPECT_EQ(job.state(), v1::JOB_STATE_QUEUED);
  // The workers come back as they were, their old ranks still running.
  auto m1 = Join("n1"), m2 = Join("n2");
  EXPECT_TRUE(m1->WaitForStop(epoch)) << "what still runs of the old epoch is told to end";
  const auto ranks = m1->WaitForStart(epoch);
  ASSERT_FALSE(ranks.empty());
  EXPECT_GT(ranks[0].epoch(), epoch);
  EXPECT_EQ(ranks[0].device_ids_size(), 2);
  ASSERT_FALSE(m2->WaitForStart(epoch).empty());
  FinishOn({m1.get(), m2.get()}, 10);
  EXPECT_NE(WaitForEvent("a", "replan").find("the coordinator was restarted"), std::string::npos);
}

// The state folder was put back from an older copy: what the workers remember is above what it says.
TEST_F(Replan, AWorkerThatHasSeenALaterEpochRaisesTheJobsNumber) {
  const NumberKey key = Key();
  FakeWorker::Options later;
  later.seen = {Given(key, "a", 40), Given(key, "lost", 3)};
  auto n1 = Join("n1", later);
  EXPECT_TRUE(n1->WaitForStop(3)) << "of a job that the store does not know";
  ASSERT_TRUE(Submit("a", MakeConfig(4)).ok());
  const auto ranks = n1->WaitForStart();
  ASSERT_FALSE(ranks.empty());
  EXPECT_GT(ranks[0].epoch(), 40);
  FinishOn({n1.get()}, 4);
}

TEST_F(Replan, ARunningEpochEndsForAWorkerThatHasSeenALaterOne) {
  const NumberKey key = Key();
  auto n1 = Join("n1"), n2 = Join("n2");
  ASSERT_TRUE(Submit("a", MakeConfig(10)).ok());
  const int64_t epoch = Train(*n1, *n2, 2);
  FakeWorker::Options later;
  later.seen = {Given(key, "a", epoch + 5)};
  auto n3 = Join("n3", later);
  EXPECT_TRUE(n1->WaitForStop(epoch + 5)) << "ends everything up to the number that was seen";
  EXPECT_TRUE(n3->WaitForStop(epoch + 5));
  const auto ranks = n3->WaitForStart(epoch + 5);
  ASSERT_FALSE(ranks.empty());
  EXPECT_EQ(ranks[0].device_ids_size(), 3);
  EXPECT_NE(WaitForEvent("a", "generation_raised").find("node n3 has seen generation"), std::string::npos);
}

// The whole state folder is put back from an older copy: the workers, who drop starts that are not above what they have seen, are
// all that knows. Without their word the job would stand in STARTING for ever.
TEST_F(Replan, AnOlderStateFolderGoesOnAboveTheWorkersEpochs) {
  int64_t epoch = 0;
  {
    auto n1 = Join("n1"), n2 = Join("n2");
    ASSERT_TRUE(Submit("a", MakeConfig(10)).ok());
    epoch = Train(*n1, *n2, 2);
    server_.reset();
  }
  const std::string older = folder_ + "/older";
  std::filesystem::copy(config_.state_folder, older);
  Start();
  FakeWorker::Options later;
  {
    auto n1 = Join("n1"), n2 = Join("n2");
    const auto ranks = n1->WaitForStart(epoch);
    ASSERT_FALSE(ranks.empty());
    epoch = ranks[0].epoch();
    later.seen = n1->seen();
    server_.reset();
  }
  std::filesystem::remove_all(config_.state_folder);
  std::filesystem::rename(older, config_.state_folder);
  Start();
  ASSERT_EQ(later.seen.size(), 1u);
  EXPECT_EQ(later.seen[0].epoch(), epoch);
  auto n1 = Join("n1", later), n2 = Join("n2", later);
  const auto ranks = n1->WaitForStart(epoch);
  ASSERT_FALSE(ranks.empty());
  ASSERT_FALSE(n2->WaitForStart(epoch).empty());
  FinishOn({n1.get(), n2.get()}, 10);
}

}  // namespace
}  // namespace motley::coordinator
