// Jobs whose checkpoints lie on the disks of their nodes: what the coordinator asks, marks and hands out.
#include <gmock/gmock.h>

#include <map>

#include "absl/synchronization/mutex.h"
#include "common/checkpoint/checkpoint_folders.h"
#include "common/session/files_ticket.h"
#include "tests/coordinator/rpc/replan_fixture.h"

namespace motley::coordinator {
namespace {

using ::testing::HasSubstr;

constexpr char kDigest[] = "digest of a manifest";

class LocalStorage : public Replan {
 protected:
  JobConfig Config() {
    JobConfig config = MakeConfig(10);
    config.checkpoint.folder.clear();
    config.checkpoint.storage = "local";
    return config;
  }
  // With a disk that outlives the worker.
  FakeWorker::Options WithDisk(const std::string& node) {
    FakeWorker::Options options;
    options.on_holdings = [this, node](const v1::HoldingsRequest& request, v1::Holdings* holdings) {
      absl::MutexLock lock(&mutex_);
      secrets_[node] = request.files_secret();
      for (const v1::HeldCheckpoint& held : disks_[node]) *holdings->add_checkpoints() = held;
      return answers_;
    };
    options.on_source = [this, node](const v1::CheckpointSource& source) {
      absl::MutexLock lock(&mutex_);
      sources_[node] = source;
    };
    return options;
  }
  // What a save leaves: the manifest on both disks, each rank's file on its own. `mark`: what the coordinator gave for it.
  void Put(int64_t step, int64_t epoch, const std::string& mark, const std::vector<std::string>& nodes) {
    absl::MutexLock lock(&mutex_);
    const JobConfig config = Config();
    for (const std::string& node : nodes) {
      v1::HeldCheckpoint held;
      held.set_name(CheckpointFolderName(step, epoch));
      held.set_manifest_sha256(kDigest);
      held.set_mark(mark);
      held.set_epoch(epoch);
      held.set_step(step);
      held.set_model(ToHfConfig(*ResolveModel(config)));
      held.set_dtype("float32");
      held.set_data_digest("digest");
      held.set_seed(config.training.seed);
      for (int rank = 0; rank < 2; ++rank) {
        v1::HeldFile* file = held.add_files();
        file->set_name(absl::StrCat("rank-", rank, ".bin"));
        file->set_bytes(100);
        file->set_node(absl::StrCat("n", rank + 1));
        file->set_here(file->node() == node);
      }
      disks_[node].insert(disks_[node].begin(), held);
    }
  }
  // As rank 0 does it. Returns the mark.
  std::string Publish(FakeWorker& n1, int64_t step) {
    const v1::RankAssignment rank = n1.ranks()[0];
    v1::WorkerMessage message;
    v1::PublishRequest* request = message.mutable_publish_request();
    request->set_job_id(rank.job_id());
    request->set_epoch(rank.epoch());
    request->set_step(step);
    request->set_rank(rank.rank());
    request->set_purpose("publish");
    request->set_manifest_sha256(kDigest);
    n1.Send(message);
    v1::PublishAnswer answer;
    EXPECT_TRUE(n1.WaitForAnswer(&answer));
    EXPECT_TRUE(answer.allowed()) << answer.reason();
    v1::WorkerMessage saved;
    v1::CheckpointPublished* published = saved.mutable_checkpoint_published();
    published->set_job_id(rank.job_id());
    published->set_epoch(rank.epoch());
    published->set_step(step);
    published->set_folder(CheckpointFolderName(step, rank.epoch()));
    published->set_bytes(200);
    published->set_job_uid(rank.job_uid());
    n1.Send(saved);
    WaitForEvent("a", "checkpoint");
    return answer.mark();
  }
  v1::CheckpointSource SourceOf(const std::string& node) {
    absl::MutexLock lock(&mutex_);
    return sources_[node];
  }

  absl::Mutex mutex_;
  std::map<std::string, std::vector<v1::HeldCheckpoint>> disks_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> secrets_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, v1::CheckpointSource> sources_ ABSL_GUARDED_BY(mutex_);
  bool answers_ = true;
};

TEST_F(LocalStorage, GoesOnFromWhatTheNodesHoldTogether) {
  auto n1 = Join("n1", WithDisk("n1")), n2 = Join("n2", WithDisk("n2"));
  ASSERT_TRUE(Submit("a", Config()).ok());
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

TEST_F(LocalStorage, OfAnOlderVersionIsSaid) {
  FakeWorker::Options options = WithDisk("n2");
  options.protocol = 2;
  auto n1 = Join("n1", WithDisk("n1")), n2 = Join("n2", options);
  ASSERT_TRUE(Submit("a", Config()).ok());
  const v1::Job job = Watch("a", [](const v1::JobUpdate& update) {
    return update.has_job() && update.job().reason().find("keeps no files of jobs; upgrade it") != std::string::npos;
  });
  EXPECT_THAT(job.reason(), HasSubstr("node n2: its worker"));
}

TEST_F(LocalStorage, FolderAndLocalDoNotGoTogether) {
  JobConfig config = Config();
  config.checkpoint.folder = "/shared";
  const grpc::Status refused = Submit("a", config);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.error_message(), HasSubstr("leave out one of the two"));
}

TEST_F(LocalStorage, AnotherJobDoesNotBeginWithItYet) {
  ASSERT_TRUE(Submit("a", Config()).ok());
  JobConfig heir = MakeConfig(10);
  heir.checkpoint.initial = "a";
  const grpc::Status refused = Submit("b", heir);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.error_message(), HasSubstr("lie on its nodes' disks"));
}

}  // namespace
}  // namespace motley::coordinator
