// Workers and coordinators that are told to end: the job saves first, and what is repeated is told truly.
#include <thread>

#include "tests/coordinator/rpc/cluster.h"

namespace motley::coordinator {
namespace {

class Leave : public ClusterTest {
 protected:
  // Two nodes after `steps` steps; returns the epoch.
  int64_t Train(int64_t steps) {
    FakeWorker::Options saving;
    saving.on_save = Save;
    n1_ = Join("n1", saving);
    n2_ = Join("n2", saving);
    EXPECT_TRUE(Submit("a", MakeConfig(10)).ok());
    const auto ranks = n1_->WaitForStart();
    EXPECT_FALSE(ranks.empty() || n2_->WaitForStart().empty());
    if (ranks.empty()) return 0;
    Go(steps);
    return ranks[0].epoch();
  }
  void Go(int64_t to_step) {
    n1_->SendAll(v1::RankEvent::KIND_READY);
    n2_->SendAll(v1::RankEvent::KIND_READY);
    n1_->StepTo(to_step);
    n2_->StepTo(to_step);
    WaitForState("a", v1::JOB_STATE_RUNNING);
    Watch("a", [&](const v1::JobUpdate& update) { return update.has_step() && update.step().step() >= to_step; });
  }
  static void Tell(FakeWorker& worker, double stop_seconds) {
    v1::WorkerMessage message;
    message.mutable_leaving()->set_stop_seconds(stop_seconds);
    worker.Send(message);
  }
  bool WaitUntilItMayStop() {
    for (int i = 0; i < 400; ++i) {
      if (server_->MayStop()) return true;
      absl::SleepFor(absl::Milliseconds(50));
    }
    return false;
  }
  // What the newest line about a replan says.
  std::string Replanned() { return WaitForEvent("a", "replan"); }

  std::unique_ptr<FakeWorker> n1_, n2_;
};

TEST_F(Leave, AWorkerThatIsToldToEndLetsTheJobSaveAndGoOnWithoutIt) {
  const int64_t epoch = Train(4);
  Tell(*n2_, 60);
  auto ranks = n1_->WaitForStart(epoch);
  ASSERT_FALSE(ranks.empty());
  EXPECT_EQ(ranks[0].device_ids_size(), 1);
  EXPECT_EQ(ranks[0].start_step(), 4);
  n1_->SendAll(v1::RankEvent::KIND_READY);
  n1_->StepTo(5);
  const std::string line = Replanned();
  EXPECT_NE(line.find("node n2 was told to end within 60 s: a checkpoint is saved first"), std::string::npos) << line;
  EXPECT_NE(line.find("0 steps repeated"), std::string::npos) << line;
  // A new worker of that name is used again.
  n2_->Drop();
  n2_->WaitForEnd();
  FakeWorker::Options again;
  again.incarnation = 2;
  n2_ = Join("n2", again);
  ranks = n2_->WaitForStart(ranks[0].epoch());
  ASSERT_FALSE(ranks.empty());
  EXPECT_EQ(ranks[0].device_ids_size(), 2);
}

// A machine that is switched off in the evening, an allocation that ended: nothing is wrong with the cluster.
TEST_F(Leave, ANodeWhoseWorkerEndedByItselfHasLeftAndIsForgottenAtAWord) {
  auto n3 = Join("n3");
  Tell(*n3, 60);
  while (NodeOf("n3").state() == "ready")
    std::this_thread::yield();  // a stream that is dropped takes what it has not sent with it
  n3->Drop();
  n3->WaitForEnd();
  while (NodeOf("n3").state() == "leaving") std::this_thread::yield();
  EXPECT_EQ(NodeOf("n3").state(), "left");
  EXPECT_EQ(NodeOf("n3").reason(), "its worker was told to end");
  EXPECT_TRUE(Forget("n3").ok()) << "it came by the machine's own port, and is no member";
  EXPECT_EQ(NodeOf("n3").name(), "");
  EXPECT_EQ(Forget("n3").error_code(), grpc::StatusCode::NOT_FOUND);
  FakeWorker::Options again;
  again.incarnation = 2;
  n3 = Join("n3", again);
  EXPECT_EQ(NodeOf("n3").state(), "ready");
  EXPECT_EQ(Forget("n3").error_code(), grpc::StatusCode::FAILED_PRECONDITION) << "it is there";
}

TEST_F(Leave, AWorkerWithoutTimeEndsTheEpochAtOnceAndTheCostIsSaid) {
  const int64_t epoch = Train(4);
  Tell(*n2_, 0.1);
  const auto ranks = n1_->WaitForStart(epoch);
  ASSERT_FALSE(ranks.empty());
  EXPECT_EQ(ranks[0].start_step(), 0);
  n1_->SendAll(v1::RankEvent::KIND_READY);
  n1_->StepTo(1);
  const std::string line = Replanned();
  EXPECT_NE(line.find("4 steps will be repeated"), std::string::npos) << line;
  EXPECT_NE(line.find("4 steps repeated"), std::string::npos) << line;
}

TEST_F(Leave, AStoppedCoordinatorSavesAndNothingIsRepeated) {
  const int64_t epoch = Train(4);
  EXPECT_FALSE(server_->MayStop());
  server_->BeginStop();
  ASSERT_TRUE(WaitUntilItMayStop());
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/checkpoints/a/" + CheckpointFolderName(4, epoch) + "/manifest.json"));
  Start();
  n1_ = Join("n1");
  n2_ = Join("n2");
  const auto ranks = n1_->WaitForStart(epoch);
  ASSERT_FALSE(ranks.empty() || n2_->WaitForStart(epoch).empty());
  EXPECT_EQ(ranks[0].start_step(), 4);
  Go(5);
  EXPECT_NE(Replanned().find("0 steps repeated"), std::string::npos) << Replanned();
}

TEST_F(Leave, ACoordinatorWithoutTimeStopsAtOnce) {
  config_.stop = absl::ZeroDuration();
  Start();
  const int64_t epoch = Train(4);
  server_->BeginStop();
  ASSERT_TRUE(WaitUntilItMayStop());
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/checkpoints/a/" + CheckpointFolderName(4, epoch)));
}

TEST_F(Leave, ACoordinatorWithoutAJobStopsAtOnce) {
  server_->BeginStop();
  EXPECT_TRUE(WaitUntilItMayStop());
}

TEST_F(Leave, AKilledCoordinatorTellsHowManyStepsAreRepeated) {
  config_.step_stored_every = absl::ZeroDuration();
  Start();
  const int64_t epoch = Train(7);
  Start();
  n1_ = Join("n1");
  n2_ = Join("n2");
  // The ranks trained on while the coordinator was away, and their worker has kept what they said.
  for (int64_t step : {8, 9}) {
    v1::WorkerMessage message;
    message.mutable_step_report()->set_job_id("a");
    message.mutable_step_report()->set_epoch(epoch);
    message.mutable_step_report()->mutable_record()->set_step(step);
    n1_->Send(message);
  }
  const auto ranks = n1_->WaitForStart(epoch);
  ASSERT_FALSE(ranks.empty() || n2_->WaitForStart(epoch).empty());
  EXPECT_EQ(ranks[0].start_step(), 0) << "there was no checkpoint";
  Go(1);
  EXPECT_NE(Replanned().find("9 steps repeated"), std::string::npos) << Replanned();
}

}  // namespace
}  // namespace motley::coordinator
