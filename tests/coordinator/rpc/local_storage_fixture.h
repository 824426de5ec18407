// A cluster of workers with disks that outlive them, for jobs whose checkpoints lie there.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "common/checkpoint/checkpoint_folders.h"
#include "tests/coordinator/rpc/replan_fixture.h"

namespace motley::coordinator {

inline constexpr char kDigest[] = "digest of a manifest";

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

}  // namespace motley::coordinator
