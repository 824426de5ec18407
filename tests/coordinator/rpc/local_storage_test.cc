// Jobs whose checkpoints lie on the disks of their nodes: what the coordinator asks, marks and hands out.
#include <gmock/gmock.h>

#include <thread>

#include "common/session/files_ticket.h"
#include "tests/coordinator/rpc/local_storage_fixture.h"

namespace motley::coordinator {
namespace {

using ::testing::HasSubstr;

TEST_F(LocalStorage, GoesOnFromWhatTheNodesHoldTogether) {
  auto n1 = Join("n1", WithDisk("n1")), n2 = Join("n2", WithDisk("n2"));
  JobConfig config = Config();
  config.checkpoint.copies = 0;
  ASSERT_TRUE(Submit("a", config).ok());
  const int64_t epoch = Train(*n1, *n2, 4);
  const std::string mark = Publish(*n1, 3);
  EXPECT_EQ(mark.size(), 32u);
  EXPECT_EQ(GetJob("a").newest_checkpoint(), CheckpointFolderName(3, epoch));
  Put(3, epoch, mark, {"n1", "n2"});
  const std::string uid = n1->ranks()[0].job_uid();
  n2->Drop();
  // Without its part there is none.
  Watch("a", [&](const v1::JobUpdate& update) {
    return update.has_job() && update.job().reason().find("which lack rank-1.bin of node n2") != std::string::npos;
  });
  auto back = Join("n2", WithDisk("n2"));
  const auto ranks = n1->WaitForStart(epoch);
  ASSERT_FALSE(ranks.empty());
  EXPECT_EQ(ranks[0].start_step(), 3);
  EXPECT_EQ(ranks[0].resume_from(), CheckpointFolderName(3, epoch));
  EXPECT_EQ(ranks[0].spec().checkpoint().storage(), "local");
  EXPECT_GT(ranks[0].epoch(), epoch);
  const v1::CheckpointSource source = SourceOf("n1");
  EXPECT_EQ(source.name(), CheckpointFolderName(3, epoch));
  EXPECT_EQ(source.manifest_sha256(), kDigest);
  EXPECT_EQ(source.mark(), mark);
  ASSERT_EQ(source.holders_size(), 2);
  EXPECT_EQ(source.holders(0).node(), "n1");
  EXPECT_EQ(source.holders(0).address(), "") << "the reader itself";
  const v1::CheckpointHolder& other = source.holders(1);
  EXPECT_EQ(other.address(), "127.0.0.1:7");
  EXPECT_EQ(other.certificate(), "certificate of n2");
  EXPECT_TRUE(other.manifest());
  ASSERT_EQ(other.files_size(), 1);
  EXPECT_EQ(other.files(0), "rank-1.bin");
  const FilesTicket ticket{JobUid(other.ticket().job_uid()), other.ticket().expires_unix_ms(), other.ticket().proof()};
  EXPECT_EQ(ticket.job_uid, JobUid(uid));
  absl::MutexLock lock(&mutex_);
  EXPECT_TRUE(Admits(secrets_["n2"], ticket, "certificate of n1", absl::ToUnixMillis(absl::Now())));
  EXPECT_FALSE(Admits(secrets_["n1"], ticket, "certificate of n1", absl::ToUnixMillis(absl::Now())));
}

// Of two nodes each takes what the other wrote; then the loss of a disk costs no step, and what is older goes.
TEST_F(LocalStorage, IsCopiedSafeAndOldOnesGo) {
  auto n1 = Join("n1", WithDisk("n1")), n2 = Join("n2", WithDisk("n2"));
  JobConfig config = Config();
  config.checkpoint.keep_latest_k = 1;
  ASSERT_TRUE(Submit("a", config).ok());
  const int64_t epoch = Train(*n1, *n2, 4);
  for (const int64_t step : {2, 3}) {
    const std::string name = CheckpointFolderName(step, epoch);
    // As it is on the disks when rank 0 says so.
    Put(step, epoch, PublishMark(*n1, step), {"n1", "n2"});
    SayPublished(*n1, step);
    WaitForMessage("a", "checkpoint_safe", name);
    EXPECT_EQ(GetJob("a").safe_checkpoint(), name);
  }
  const std::set<std::pair<std::string, int64_t>> old = {{"n1", 2}, {"n2", 2}};
  absl::MutexLock lock(&mutex_);
  const auto all_dropped = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return drops_.size() == old.size(); };
  mutex_.AwaitWithTimeout(absl::Condition(&all_dropped), Patience(absl::Seconds(30)));
  EXPECT_EQ(drops_, old);
  ASSERT_EQ(copies_.size(), 4u);
  for (const auto& [node, request] : copies_) {
    ASSERT_EQ(request.files_size(), 1);
    EXPECT_EQ(request.files(0), node == "n1" ? "rank-1.bin" : "rank-0.bin");
    EXPECT_EQ(request.source().mark().size(), 32u);
    EXPECT_GT(request.bytes_per_second(), 0) << "beside training";
    EXPECT_EQ(request.source().holders_size(), 2);
  }
}

// A node that saved it, and whose rank is elsewhere now: what it says of its copy is heard, too.
TEST_F(LocalStorage, ATakerThatTrainsNoMoreIsHeard) {
  auto n1 = Join("n1", WithDisk("n1")), n2 = Join("n2", WithDisk("n2"));
  ASSERT_TRUE(Submit("a", Config()).ok());
  const int64_t epoch = Train(*n1, *n2, 4);
  {
    absl::MutexLock lock(&mutex_);
    copy_error_ = "the disk is full";
  }
  Put(3, epoch, PublishMark(*n1, 3), {"n1", "n2"});
  SayPublished(*n1, 3);
  WaitForMessage("a", "copy_failed", "the disk is full");
  ASSERT_TRUE(StopJob("a").ok());
  WaitForState("a", v1::JOB_STATE_STOPPED);
  {
    absl::MutexLock lock(&mutex_);
    copy_error_.clear();
  }
  // The stream of a job that has ended does not go on.
  const absl::Time end = absl::Now() + Patience(absl::Seconds(30));
  while (GetJob("a").safe_checkpoint().empty() && absl::Now() < end) std::this_thread::yield();
  EXPECT_EQ(GetJob("a").safe_checkpoint(), CheckpointFolderName(3, epoch));
}

TEST_F(LocalStorage, ACopyThatFailsIsSaidAndTriedAgain) {
  auto n1 = Join("n1", WithDisk("n1")), n2 = Join("n2", WithDisk("n2"));
  {
    absl::MutexLock lock(&mutex_);
    copy_error_ = "the disk is full";
  }
  ASSERT_TRUE(Submit("a", Config()).ok());
  const int64_t epoch = Train(*n1, *n2, 4);
  Put(3, epoch, PublishMark(*n1, 3), {"n1", "n2"});
  SayPublished(*n1, 3);
  WaitForMessage("a", "copy_failed", "the disk is full; it is tried again");
  EXPECT_EQ(GetJob("a").safe_checkpoint(), "");
  {
    absl::MutexLock lock(&mutex_);
    copy_error_.clear();
  }
  WaitForMessage("a", "checkpoint_safe", CheckpointFolderName(3, epoch));
}

// What both disks had is gone with them: people decide whether the steps are.
TEST_F(LocalStorage, WhatWasSafeIsWaitedForUntilPeopleGoBack) {
  auto n1 = Join("n1", WithDisk("n1")), n2 = Join("n2", WithDisk("n2"));
  ASSERT_TRUE(Submit("a", Config()).ok());
  const int64_t epoch = Train(*n1, *n2, 4);
  Put(3, epoch, PublishMark(*n1, 3), {"n1", "n2"});
  SayPublished(*n1, 3);
  WaitForMessage("a", "checkpoint_safe", CheckpointFolderName(3, epoch));
  n2->Drop();
  const auto alone = n1->WaitForStart(epoch);
  ASSERT_FALSE(alone.empty());
  EXPECT_EQ(alone[0].start_step(), 3) << "the other's part is here, too";
  {
    absl::MutexLock lock(&mutex_);
    disks_["n1"].clear();
  }
  n1->Drop();
  auto emptied = Join("n1", WithDisk("n1"));
  Watch("a", [&](const v1::JobUpdate& update) {
    return update.has_job() && update.job().reason().find("has anything of checkpoint") != std::string::npos;
  });
  v1::ResumeJobRequest request;
  request.set_job_id("a");
  request.set_from_step(0);
  EXPECT_EQ(Resume(request).error_code(), grpc::StatusCode::FAILED_PRECONDITION) << "it has not ended";
  ASSERT_TRUE(StopJob("a").ok());
  WaitForState("a", v1::JOB_STATE_STOPPED);
  ASSERT_TRUE(Resume(request).ok());
  const auto again = emptied->WaitForStart();
  ASSERT_FALSE(again.empty());
  EXPECT_EQ(again[0].start_step(), 0);
}

TEST_F(LocalStorage, WithoutAFolderItIsLocal) {
  JobConfig config = Config();
  config.checkpoint.storage = "auto";
  ASSERT_TRUE(Submit("a", config).ok());
  EXPECT_EQ(GetJob("a").spec().checkpoint().storage(), "local");
  EXPECT_TRUE(Submit("a", config).ok()) << "the same again";
  JobConfig shared = MakeConfig(10);
  ASSERT_EQ(shared.checkpoint.storage, "auto");
  ASSERT_TRUE(Submit("b", shared).ok());
  EXPECT_EQ(GetJob("b").spec().checkpoint().storage(), "shared");
}

TEST_F(LocalStorage, WhatHasNoMarkOfThisStoreIsNotGoneOnFrom) {
  auto n1 = Join("n1", WithDisk("n1")), n2 = Join("n2", WithDisk("n2"));
  Put(9, 77, std::string(32, '0'), {"n1", "n2"});
  ASSERT_TRUE(Submit("a", Config()).ok());
  const auto ranks = n1->WaitForStart();
  ASSERT_FALSE(ranks.empty());
  EXPECT_EQ(ranks[0].start_step(), 0);
  EXPECT_LT(ranks[0].epoch(), 77);
  EXPECT_EQ(SourceOf("n1").name(), "");
}

TEST_F(LocalStorage, ANodeThatCanKeepNoneIsNamedAndWaitedFor) {
  FakeWorker::Options options = WithDisk("n2");
  options.on_holdings = [](const v1::HoldingsRequest&, v1::Holdings* holdings) {
    holdings->set_error("/data/files is read-only");
    holdings->set_error_code(static_cast<int>(absl::StatusCode::kPermissionDenied));
    return true;
  };
  auto n1 = Join("n1", WithDisk("n1")), n2 = Join("n2", options);
  ASSERT_TRUE(Submit("a", Config()).ok());
  const v1::Job job = Watch("a", [](const v1::JobUpdate& update) {
    return update.has_job() && update.job().reason().find("node n2: /data/files is read-only") != std::string::npos;
  });
  EXPECT_THAT(job.reason(), HasSubstr("checkpoints cannot be kept on the nodes' disks"));
}

TEST_F(LocalStorage, FolderAndLocalDoNotGoTogether) {
  JobConfig config = Config();
  config.checkpoint.folder = "/shared";
  const grpc::Status refused = Submit("a", config);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.error_message(), HasSubstr("leave out one of the two"));
}

TEST_F(LocalStorage, AnotherJobBeginsWithItsWeights) {
  auto n1 = Join("n1", WithDisk("n1")), n2 = Join("n2", WithDisk("n2"));
  ASSERT_TRUE(Submit("a", Config()).ok());
  const int64_t epoch = Train(*n1, *n2, 4);
  const std::string uid = n1->ranks()[0].job_uid(), mark = PublishMark(*n1, 3);
  Put(3, epoch, mark, {"n1", "n2"});
  SayPublished(*n1, 3);
  ASSERT_TRUE(StopJob("a").ok());
  WaitForState("a", v1::JOB_STATE_STOPPED);
  JobConfig heir = Config();
  heir.checkpoint.initial = "a";
  heir.training.seed = 7;
  ASSERT_TRUE(Submit("b", heir).ok());
  const absl::Time end = absl::Now() + Patience(absl::Seconds(30));
  while (n1->ranks()[0].job_id() != "b" && absl::Now() < end) std::this_thread::yield();
  const auto ranks = n1->ranks();
  ASSERT_EQ(ranks[0].job_id(), "b");
  EXPECT_EQ(ranks[0].start_step(), 0);
  EXPECT_EQ(ranks[0].resume_from(), CheckpointFolderName(3, epoch));
  const v1::CheckpointSource source = SourceOf("n1");
  EXPECT_EQ(source.job_id(), "a");
  EXPECT_EQ(source.job_uid(), uid);
  EXPECT_EQ(source.mark(), mark);
  ASSERT_EQ(source.holders_size(), 2);
  EXPECT_EQ(source.holders(1).ticket().job_uid(), uid) << "it reads that job's files";
  EXPECT_EQ(GetJob("b").newest_checkpoint(), "") << "it has none of its own";
}

TEST_F(LocalStorage, WhatAJobBeginsWithFits) {
  ASSERT_TRUE(Submit("a", Config()).ok());
  JobConfig heir = MakeConfig(10);
  heir.checkpoint.initial = "a";
  const grpc::Status refused = Submit("b", heir);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.error_message(), HasSubstr("lie on its nodes' disks"));
}

}  // namespace
}  // namespace motley::coordinator
