// Jobs whose checkpoints lie on the disks of their nodes: what the coordinator asks, marks and hands out.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>
#include <thread>

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
  JobConfig Config() { return MakeLocalConfig(10); }
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
    options.on_copy = [this, node](const v1::CopyRequest& request, v1::FetchProgress* end) {
      absl::MutexLock lock(&mutex_);
      copies_.emplace_back(node, request);
      if (!copy_error_.empty()) {
        end->set_done(false);
        end->set_error(copy_error_);
        return;
      }
      for (v1::HeldCheckpoint& held : disks_[node]) {
        for (v1::HeldFile& file : *held.mutable_files()) {
          const auto& files = request.files();
          if (held.name() == request.source().name() && std::count(files.begin(), files.end(), file.name()) > 0)
            file.set_here(true);
        }
      }
    };
    options.on_drop = [this, node](const v1::DropRequest& request) {
      absl::MutexLock lock(&mutex_);
      for (const v1::DroppedCheckpoint& dropped : request.checkpoints()) drops_.insert({node, dropped.step()});
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
    const std::string mark = PublishMark(n1, step);
    SayPublished(n1, step);
    return mark;
  }
  std::string PublishMark(FakeWorker& n1, int64_t step) {
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
    return answer.mark();
  }
  void SayPublished(FakeWorker& n1, int64_t step) {
    const v1::RankAssignment rank = n1.ranks()[0];
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
  }
  void WaitForMessage(const std::string& job, const std::string& kind, const std::string& part) {
    bool said = false;
    Watch(job, [&](const v1::JobUpdate& update) {
      return said =
                 update.has_event() && update.event().kind() == kind && update.event().message().find(part) != std::string::npos;
    });
    EXPECT_TRUE(said) << kind << " with '" << part << "' was not said";
  }
  grpc::Status Resume(const v1::ResumeJobRequest& request) {
    grpc::ClientContext context;
    v1::ResumeJobResponse response;
    return stub_->ResumeJob(&context, request, &response);
  }
  v1::CheckpointSource SourceOf(const std::string& node) {
    absl::MutexLock lock(&mutex_);
    return sources_[node];
  }

  absl::Mutex mutex_;
  std::map<std::string, std::vector<v1::HeldCheckpoint>> disks_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> secrets_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, v1::CheckpointSource> sources_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::pair<std::string, v1::CopyRequest>> copies_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<std::string, int64_t>> drops_ ABSL_GUARDED_BY(mutex_);
  std::string copy_error_ ABSL_GUARDED_BY(mutex_);
  bool answers_ = true;
};

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
