// An ended job that goes on, and one that is deleted, over the real API and sessions.
#include "absl/strings/match.h"
#include "tests/coordinator/rpc/cluster.h"

namespace motley::coordinator {
namespace {

class Resume : public ClusterTest {
 protected:
  grpc::Status ResumeJob(const std::string& id, const v1::JobSpec& changes, v1::ResumeJobResponse* response) {
    grpc::ClientContext context;
    v1::ResumeJobRequest request;
    request.set_job_id(id);
    *request.mutable_changes() = changes;
    return stub_->ResumeJob(&context, request, response);
  }
  grpc::Status DeleteJob(const std::string& id, v1::DeleteJobResponse* response) {
    grpc::ClientContext context;
    v1::DeleteJobRequest request;
    request.set_job_id(id);
    return stub_->DeleteJob(&context, request, response);
  }
  void Stop(const std::string& id) {
    ASSERT_TRUE(StopJob(id).ok());
    WaitForState(id, v1::JOB_STATE_STOPPED);
  }
  // Job a, stopped at step 3 of 5 with a checkpoint; the epoch that it ended with.
  int64_t TrainAndStop() {
    FakeWorker::Options options;
    options.on_save = Save;
    worker_ = Join("n1", options);
    EXPECT_TRUE(Submit("a", MakeConfig(5)).ok());
    const auto ranks = worker_->WaitForStart();
    if (ranks.empty()) return 0;
    worker_->SendAll(v1::RankEvent::KIND_READY);
    worker_->StepTo(3);
    WaitForState("a", v1::JOB_STATE_RUNNING);
    Stop("a");
    return ranks[0].epoch();
  }
  std::unique_ptr<FakeWorker> worker_;
};

TEST_F(Resume, AStoppedJobGoesOnFromItsCheckpointWithOtherSettings) {
  const int64_t epoch = TrainAndStop();
  v1::JobSpec changes;
  changes.mutable_training()->set_steps(8);
  v1::ResumeJobResponse response;
  grpc::Status status = ResumeJob("a", changes, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(response.resumed());
  EXPECT_EQ(response.job().spec().training().steps(), 8);
  EXPECT_EQ(response.job().spec().data().path(), "/data") << "what is absent stays";
  const auto ranks = worker_->WaitForStart(epoch);
  ASSERT_FALSE(ranks.empty());
  EXPECT_GT(ranks[0].epoch(), epoch);
  EXPECT_EQ(ranks[0].start_step(), 3);
  EXPECT_EQ(ranks[0].spec().training().steps(), 8);
  EXPECT_TRUE(ranks[0].resume_from().ends_with("a/" + CheckpointFolderName(3, epoch))) << ranks[0].resume_from();

  v1::ResumeJobResponse again;
  EXPECT_TRUE(ResumeJob("a", changes, &again).ok()) << "a retry";
  EXPECT_FALSE(again.resumed());
  changes.mutable_training()->set_steps(9);
  EXPECT_EQ(ResumeJob("a", changes, &again).error_code(), grpc::StatusCode::FAILED_PRECONDITION);

  worker_->SendAll(v1::RankEvent::KIND_READY);
  worker_->StepTo(8);
  worker_->SendAll(v1::RankEvent::KIND_FINISHED);
  EXPECT_EQ(WaitForState("a", v1::JOB_STATE_SUCCEEDED).step(), 8);
}

// Later it would wait for a node of that name.
TEST_F(Resume, ASlipInAChangedPinIsRefused) {
  TrainAndStop();
  v1::JobSpec changes;
  changes.mutable_planner()->set_pins("stage0=n11");
  v1::ResumeJobResponse response;
  const grpc::Status status = ResumeJob("a", changes, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(absl::StrContains(status.error_message(), "did you mean 'n1'?")) << status.error_message();
}

TEST_F(Resume, AWatcherSeesBothParts) {
  TrainAndStop();
  v1::ResumeJobResponse response;
  ASSERT_TRUE(ResumeJob("a", v1::JobSpec(), &response).ok());
  Stop("a");
  int ends = 0;
  Watch("a", [&](const v1::JobUpdate& update) {
    // The first message is the state of now.
    ends += updates_.size() > 1 && update.has_job() && update.job().state() == v1::JOB_STATE_STOPPED;
    return false;
  });
  EXPECT_EQ(ends, 2) << "the stream does not end with the first part";
  for (const v1::JobUpdate& update : updates_) {
    if (!update.has_step()) continue;
    EXPECT_LE(update.cursor(), response.cursor()) << "the second part begins behind the cursor";
  }
}

TEST_F(Resume, WhatMayNotChangeIsNamed) {
  TrainAndStop();
  v1::JobSpec changes;
  changes.mutable_training()->set_seed(7);
  changes.mutable_training()->set_seq_len(8);
  v1::ResumeJobResponse response;
  const grpc::Status status = ResumeJob("a", changes, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  for (const char* key : {"training.seed", "training.seq_len"}) {
    EXPECT_TRUE(absl::StrContains(status.error_message(), key)) << status.error_message();
  }
  EXPECT_EQ(GetJob("a").state(), v1::JOB_STATE_STOPPED);
  EXPECT_EQ(ResumeJob("nobody", v1::JobSpec(), &response).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(Resume, AJobThatIsResumedWhileItStopsGoesOn) {
  std::atomic<bool> resumed = false;
  FakeWorker::Options options;
  // The user changes their mind while the checkpoint is written.
  options.on_save = [&](const v1::RankAssignment& rank, int64_t step) {
    Save(rank, step);
    if (rank.epoch() > 10) return;
    v1::ResumeJobResponse response;
    const grpc::Status status = ResumeJob("a", v1::JobSpec(), &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_TRUE(response.resumed());
    EXPECT_EQ(response.job().state(), v1::JOB_STATE_REPLANNING) << response.job().reason();
    resumed = true;
  };
  auto worker = Join("n1", options);
  ASSERT_TRUE(Submit("a", MakeConfig(5)).ok());
  const auto ranks = worker->WaitForStart();
  ASSERT_FALSE(ranks.empty());
  worker->SendAll(v1::RankEvent::KIND_READY);
  worker->StepTo(3);
  WaitForState("a", v1::JOB_STATE_RUNNING);
  ASSERT_TRUE(StopJob("a").ok());
  const auto again = worker->WaitForStart(ranks[0].epoch());
  ASSERT_FALSE(again.empty()) << GetJob("a").reason();
  EXPECT_TRUE(resumed);
  EXPECT_EQ(again[0].start_step(), 3) << "what it saved is not lost";
  worker->SendAll(v1::RankEvent::KIND_READY);
  worker->StepTo(5);
  worker->SendAll(v1::RankEvent::KIND_FINISHED);
  EXPECT_EQ(WaitForState("a", v1::JOB_STATE_SUCCEEDED).step(), 5);
}

TEST_F(Resume, AResumedJobOutlivesARestart) {
  TrainAndStop();
  worker_.reset();
  v1::JobSpec changes;
  changes.mutable_training()->set_steps(8);
  v1::ResumeJobResponse response;
  ASSERT_TRUE(ResumeJob("a", changes, &response).ok());
  Start();
  const v1::Job job = GetJob("a");
  EXPECT_EQ(job.spec().training().steps(), 8);
  EXPECT_NE(job.state(), v1::JOB_STATE_STOPPED);
}

TEST_F(Resume, ADeletedJobIsForgottenAndItsCheckpointsStay) {
  const int64_t epoch = TrainAndStop();
  const std::string uid = GetJob("a").uid();
  ASSERT_TRUE(Submit("b", MakeConfig(5)).ok());
  v1::DeleteJobResponse response;
  EXPECT_EQ(DeleteJob("b", &response).error_code(), grpc::StatusCode::FAILED_PRECONDITION) << "it has not ended";
  Stop("b");
  ASSERT_TRUE(DeleteJob("a", &response).ok());
  EXPECT_EQ(response.checkpoint_folder(), folder_ + "/checkpoints/a");
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/checkpoints/a/" + CheckpointFolderName(3, epoch)));
  EXPECT_EQ(DeleteJob("a", &response).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(response.adopt(), uid);
  // A new job of this id is another job: an id that is free again gives nobody what is there.
  ASSERT_TRUE(Submit("a", MakeConfig(5)).ok());
  const v1::Job refused = WaitForState("a", v1::JOB_STATE_FAILED);
  EXPECT_NE(refused.uid(), uid);
  for (const std::string& part :
       {"job 'a' (uid " + uid + "), newest step 3", "`echo " + uid + " >'" + folder_ + "/checkpoints/a/adopt'`",
        std::string("`motley resume a`"), std::string("`motley delete a`"), std::string("another id")}) {
    EXPECT_TRUE(absl::StrContains(refused.reason(), part)) << part << " in " << refused.reason();
  }
  // Unless it says so. Workers have seen the old numbers.
  Adopt("a", response.adopt());
  v1::ResumeJobResponse resumed;
  ASSERT_TRUE(ResumeJob("a", {}, &resumed).ok());
  const auto ranks = worker_->WaitForStart(epoch);
  ASSERT_FALSE(ranks.empty());
  EXPECT_EQ(ranks[0].start_step(), 3) << "from the checkpoints that stayed";
}

// What a job has adopted it goes on from without the file, which its ranks put aside, or whoever removes it; the next one of the
// id does not.
TEST_F(Resume, WhatWasAdoptedIsRemembered) {
  const int64_t epoch = TrainAndStop();
  const std::string first = GetJob("a").uid(), folder = folder_ + "/checkpoints/a";
  v1::DeleteJobResponse response;
  ASSERT_TRUE(DeleteJob("a", &response).ok());
  Adopt("a", response.adopt());
  ASSERT_TRUE(Submit("a", MakeConfig(9)).ok());
  const auto ranks = worker_->WaitForStart(epoch);
  ASSERT_FALSE(ranks.empty());
  EXPECT_EQ(ranks[0].start_step(), 3);
  const std::string second = GetJob("a").uid();
  std::filesystem::remove(folder + "/adopt");
  // It has saved nothing yet.
  worker_->SendAll(v1::RankEvent::KIND_READY);
  worker_->StepTo(4);
  worker_->SendAll(v1::RankEvent::KIND_DIED, "signal 9");
  const auto again = worker_->WaitForStart(ranks[0].epoch());
  ASSERT_FALSE(again.empty()) << GetJob("a").reason();
  EXPECT_EQ(again[0].start_step(), 3);
  EXPECT_EQ(again[0].resume_from(), folder + "/" + CheckpointFolderName(3, epoch));
  worker_->SendAll(v1::RankEvent::KIND_READY);
  worker_->StepTo(5);
  WaitForState("a", v1::JOB_STATE_RUNNING);
  Save(again[0], 5);
  v1::WorkerMessage saved;
  saved.mutable_checkpoint_published()->set_job_id("a");
  saved.mutable_checkpoint_published()->set_job_uid(second);
  saved.mutable_checkpoint_published()->set_epoch(again[0].epoch());
  saved.mutable_checkpoint_published()->set_step(5);
  saved.mutable_checkpoint_published()->set_folder(folder + "/" + CheckpointFolderName(5, again[0].epoch()));
  worker_->Send(saved);
  WaitForEvent("a", "checkpoint");
  worker_->StepTo(6);
  Stop("a");
  ASSERT_TRUE(DeleteJob("a", &response).ok());
  EXPECT_EQ(response.adopt(), second) << "it has saved one of its own";
  ASSERT_TRUE(Submit("a", MakeConfig(9)).ok());
  const std::string reason = WaitForState("a", v1::JOB_STATE_FAILED).reason();
  for (const std::string& part : {"job 'a' (uid " + second + "), newest step 6", "job 'a' (uid " + first + "), newest step 3"}) {
    EXPECT_TRUE(absl::StrContains(reason, part)) << part << " in " << reason;
  }
}

TEST_F(Resume, WhatAJobAdoptedIsItsNextOnesToo) {
  const int64_t epoch = TrainAndStop();
  const std::string first = GetJob("a").uid();
  v1::DeleteJobResponse response;
  ASSERT_TRUE(DeleteJob("a", &response).ok());
  Adopt("a", response.adopt());
  ASSERT_TRUE(Submit("a", MakeConfig(9)).ok());
  ASSERT_FALSE(worker_->WaitForStart(epoch).empty());
  const std::string second = GetJob("a").uid();
  Stop("a");  // before it has saved
  ASSERT_TRUE(DeleteJob("a", &response).ok());
  EXPECT_EQ(response.adopt(), second + " " + first);
}

TEST_F(Resume, ANewJobThatFindsAllItsStepsDoneSaysSo) {
  const int64_t epoch = TrainAndStop();
  v1::DeleteJobResponse response;
  ASSERT_TRUE(DeleteJob("a", &response).ok());
  Adopt("a", response.adopt());
  ASSERT_TRUE(Submit("a", MakeConfig(2)).ok());
  const v1::Job job = WaitForState("a", v1::JOB_STATE_FAILED);
  const std::string name = CheckpointFolderName(3, epoch);
  EXPECT_TRUE(absl::StrContains(job.reason(), name)) << job.reason();
  for (const char* part :
       {" is at step 3 and training.steps is 2: no step is left to make", "made by an earlier job 'a'", "give more steps"}) {
    EXPECT_TRUE(absl::StrContains(job.reason(), part)) << job.reason();
  }
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/checkpoints/a/" + name));
}

}  // namespace
}  // namespace motley::coordinator
