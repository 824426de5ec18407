// A job that goes on from what one of its id left on the nodes' disks, whose coordinator lost its store (submit --adopt).
#include "tests/coordinator/rpc/local_storage_fixture.h"

namespace motley::coordinator {
namespace {

using ::testing::HasSubstr;

constexpr char kUid[] = "0123456789abcdef0123456789abcdef";
const std::string kMarkOfLostStore(32, '0');

class Adopt : public LocalStorage {
 protected:
  grpc::Status SubmitAdopting(const JobConfig& config, const std::string& uid, const std::string& id = "a") {
    grpc::ClientContext context;
    v1::SubmitJobRequest request;
    request.set_job_id(id);
    *request.mutable_spec() = wire::ToProto(config);
    request.set_adopt_uid(uid);
    v1::SubmitJobResponse response;
    return stub_->SubmitJob(&context, request, &response);
  }
  void WaitForReason(const std::string& part) {
    Watch("a",
          [&](const v1::JobUpdate& update) { return update.has_job() && update.job().reason().find(part) != std::string::npos; });
  }
  // As people say it: motley stop, motley resume --from.
  void StopAndGoBack(int64_t step) {
    ASSERT_TRUE(StopJob("a").ok());
    WaitForState("a", v1::JOB_STATE_STOPPED);
    v1::ResumeJobRequest request;
    request.set_job_id("a");
    request.set_from_step(step);
    ASSERT_TRUE(Resume(request).ok());
  }
  void LoseFile(const std::string& node, const std::string& checkpoint) {
    absl::MutexLock lock(&mutex_);
    for (v1::HeldCheckpoint& held : disks_[node]) {
      if (held.name() != checkpoint) continue;
      for (v1::HeldFile& file : *held.mutable_files()) file.set_here(false);
    }
  }
};

TEST_F(Adopt, GoesOnFromTheNewestThatALostStoreMarked) {
  auto n1 = Join("n1", WithDisk("n1")), n2 = Join("n2", WithDisk("n2"));
  Put(5, 70, kMarkOfLostStore, {"n1", "n2"});
  Put(9, 77, kMarkOfLostStore, {"n1", "n2"});
  JobConfig config = Config();
  config.training.steps = 100;
  config.checkpoint.keep_latest_k = 1;
  ASSERT_TRUE(SubmitAdopting(config, kUid).ok());
  EXPECT_EQ(GetJob("a").uid(), kUid);
  const auto ranks = n1->WaitForStart();
  ASSERT_FALSE(ranks.empty());
  EXPECT_EQ(ranks[0].start_step(), 9);
  const int64_t epoch = ranks[0].epoch();
  EXPECT_GT(epoch, 1077) << "above all that lies there, and what absent disks may have";
  EXPECT_EQ(ranks[0].job_uid(), kUid);
  EXPECT_EQ(SourceOf("n1").mark(), kMarkOfLostStore);
  EXPECT_EQ(GetJob("a").newest_checkpoint(), CheckpointFolderName(9, 77));
  // What comes back later of generations from this one on was not seen by this store, and counts for nothing.
  n1->SendAll(v1::RankEvent::KIND_READY);
  n2->SendAll(v1::RankEvent::KIND_READY);
  for (int64_t step = 10; step <= 12; ++step) n1->Step(step), n2->Step(step);
  WaitForState("a", v1::JOB_STATE_RUNNING);
  Put(50, epoch + 1, kMarkOfLostStore, {"n1", "n2"});
  Put(12, epoch, PublishMark(*n1, 12), {"n1", "n2"});
  SayPublished(*n1, 12);
  WaitForMessage("a", "checkpoint_safe", CheckpointFolderName(12, epoch));
  // What was adopted goes as the job's own does.
  const std::set<std::pair<std::string, int64_t>> old = {{"n1", 5}, {"n2", 5}, {"n1", 9}, {"n2", 9}};
  absl::MutexLock lock(&mutex_);
  const auto all_dropped = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return drops_.size() == old.size(); };
  mutex_.AwaitWithTimeout(absl::Condition(&all_dropped), Patience(absl::Seconds(30)));
  EXPECT_EQ(drops_, old);
}

// Nobody knows any more what was safe: steps are given up by people alone.
TEST_F(Adopt, WaitsForWhatLacksUntilPeopleGoBack) {
  auto n1 = Join("n1", WithDisk("n1")), n2 = Join("n2", WithDisk("n2"));
  Put(5, 70, kMarkOfLostStore, {"n1", "n2"});
  Put(9, 77, kMarkOfLostStore, {"n1", "n2"});
  LoseFile("n2", CheckpointFolderName(9, 77));
  ASSERT_TRUE(SubmitAdopting(Config(), kUid).ok());
  WaitForReason(
      "lack rank-1.bin of node n2; start the worker of a node that has it, with its disk, or give up what is newer "
      "than step 5: motley stop a --wait, then motley resume a --from 5");
  StopAndGoBack(5);
  const auto ranks = n1->WaitForStart();
  ASSERT_FALSE(ranks.empty());
  EXPECT_EQ(ranks[0].start_step(), 5);
  EXPECT_GT(ranks[0].epoch(), 77) << "above what was given up, too";
}

TEST_F(Adopt, DoesNotBeginAnewByItself) {
  auto n1 = Join("n1", WithDisk("n1")), n2 = Join("n2", WithDisk("n2"));
  ASSERT_TRUE(SubmitAdopting(Config(), kUid).ok());
  WaitForReason("no node that is here has a checkpoint of uid 0123456789abcdef0123456789abcdef, which the job is to adopt");
  StopAndGoBack(0);
  Put(9, 77, kMarkOfLostStore, {"n1", "n2"});  // as of a disk that comes now
  const auto ranks = n1->WaitForStart();
  ASSERT_FALSE(ranks.empty());
  EXPECT_EQ(ranks[0].start_step(), 0) << "that is what people said";
}

// Whatever generations come: nobody has seen any when people say so.
TEST_F(Adopt, PeopleSayHowFarItGoesBackBeforeAnyNodeIsHere) {
  ASSERT_TRUE(SubmitAdopting(Config(), kUid).ok());
  StopAndGoBack(5);
  Put(5, 70, kMarkOfLostStore, {"n1", "n2"});
  Put(9, 77, kMarkOfLostStore, {"n1", "n2"});
  auto n1 = Join("n1", WithDisk("n1")), n2 = Join("n2", WithDisk("n2"));
  const auto ranks = n1->WaitForStart();
  ASSERT_FALSE(ranks.empty());
  EXPECT_EQ(ranks[0].start_step(), 5);
  EXPECT_GT(ranks[0].epoch(), 77);
}

TEST_F(Adopt, WhatIsNoLostJobsIsRefused) {
  grpc::Status refused = SubmitAdopting(Config(), "../../etc");
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.error_message(), HasSubstr("adopt_uid must be 32 of 0-9 and a-f, got '../../etc'; motley files lists"));
  refused = SubmitAdopting(MakeConfig(10), kUid);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.error_message(), HasSubstr("where a file says whom it adopts: echo 0123456789abcdef0123456789abcdef >"));
  ASSERT_TRUE(SubmitAdopting(Config(), kUid).ok());
  EXPECT_TRUE(SubmitAdopting(Config(), kUid).ok()) << "a command that is given again";
  refused = SubmitAdopting(Config(), kUid, "b");
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(refused.error_message(), HasSubstr("is that of job a, which is here"));
  refused = SubmitAdopting(Config(), std::string(32, 'f'));
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::ALREADY_EXISTS);
}

}  // namespace
}  // namespace motley::coordinator
