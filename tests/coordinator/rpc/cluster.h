// A coordinator in this process on free ports and a temporary folder, and a client of its API.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/checkpoint/checkpoint.h"
#include "common/job/job.h"
#include "common/model/parameters.h"
#include "common/rpc/channel.h"
#include "common/wire/job.h"
#include "coordinator/server.h"
#include "coordinator/store/number_key.h"
#include "coordinator/store/sqlite_store.h"
#include "proto/motley/v1/motley.grpc.pb.h"
#include "tests/common/base/patience.h"
#include "tests/coordinator/rpc/fake_worker.h"
#include "tests/coordinator/rpc/tiny_job.h"

namespace motley::coordinator {

class ClusterTest : public testing::Test {
 protected:
  ClusterTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "motley-cluster-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    config_.socket = folder_ + "/coordinator.sock";
    config_.listen = "127.0.0.1:0";
    config_.workers_listen = "127.0.0.1:0";
    config_.metrics = "";
    config_.state_folder = folder_ + "/state";
    config_.lease = absl::Seconds(2);
    config_.driver.settle = absl::Milliseconds(150);
    config_.driver.kill_timeout = absl::Seconds(3);
    Start();
  }
  ~ClusterTest() override {
    server_.reset();
    std::filesystem::remove_all(folder_);
  }
  void Start() {
    server_.reset();
    auto server = Server::Start(config_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    stub_ = v1::Motley::NewStub(OpenChannel(server_->address()));
  }
  std::unique_ptr<FakeWorker> Join(const std::string& node, FakeWorker::Options options = {}) {
    auto worker = std::make_unique<FakeWorker>(server_->workers_address(), node, std::move(options));
    EXPECT_TRUE(worker->WaitForWelcome());
    return worker;
  }
  // Numbers as this coordinator gives them. It is restarted for it: only one process opens a store.
  NumberKey Key() {
    server_.reset();
    auto store = SqliteStore::Open(config_.state_folder);
    EXPECT_TRUE(store.ok()) << store.status();
    const NumberKey key((*store)->secret(), (*store)->mark().store_id);
    store->reset();
    Start();
    return key;
  }
  static v1::JobEpoch Given(const NumberKey& key, const std::string& job, int64_t epoch) {
    v1::JobEpoch given;
    given.set_job_id(job);
    given.set_epoch(epoch);
    given.set_token(key.TokenOf(JobId(job), Epoch(epoch)));
    given.set_key_id(key.id());
    return given;
  }
  JobConfig MakeConfig(int64_t steps) { return TinyJob(steps, folder_ + "/checkpoints"); }
  // That a new job of this id goes on from the checkpoints of this uid, or of this id where they have none.
  void Adopt(const std::string& id, const std::string& word) {
    ASSERT_TRUE(WriteFileDurably(folder_ + "/checkpoints/" + id + "/adopt", word + "\n").ok());
  }
  grpc::Status Submit(const std::string& id, const JobConfig& config, v1::Job* job = nullptr) {
    grpc::ClientContext context;
    v1::SubmitJobRequest request;
    request.set_job_id(id);
    *request.mutable_spec() = wire::ToProto(config);
    v1::SubmitJobResponse response;
    const grpc::Status status = stub_->SubmitJob(&context, request, &response);
    if (job != nullptr) *job = response.job();
    return status;
  }
  v1::Job GetJob(const std::string& id) {
    grpc::ClientContext context;
    v1::GetJobRequest request;
    request.set_job_id(id);
    v1::GetJobResponse response;
    const grpc::Status status = stub_->GetJob(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.job();
  }
  grpc::Status StopJob(const std::string& id) {
    grpc::ClientContext context;
    v1::StopJobRequest request;
    request.set_job_id(id);
    v1::StopJobResponse response;
    return stub_->StopJob(&context, request, &response);
  }
  // Reads the job's stream until `found` says so or the stream ends; everything seen is in updates_.
  v1::Job Watch(const std::string& id, const std::function<bool(const v1::JobUpdate&)>& found) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + Patience(absl::Seconds(30))));
    v1::WatchJobRequest request;
    request.set_job_id(id);
    auto reader = stub_->WatchJob(&context, request);
    v1::JobUpdate update;
    v1::Job job;
    updates_.clear();
    while (reader->Read(&update)) {
      updates_.push_back(update);
      if (update.has_job()) job = update.job();
      if (found(update)) break;
    }
    context.TryCancel();
    return job;
  }
  v1::Job WaitForState(const std::string& id, v1::JobState state) {
    const v1::Job job =
        Watch(id, [state](const v1::JobUpdate& update) { return update.has_job() && update.job().state() == state; });
    EXPECT_EQ(job.state(), state) << v1::JobState_Name(job.state()) << ": " << job.reason();
    return job;
  }
  // As the people's service lists it; empty: not at all.
  v1::Node NodeOf(const std::string& name) {
    grpc::ClientContext context;
    v1::ListNodesResponse response;
    EXPECT_TRUE(stub_->ListNodes(&context, {}, &response).ok());
    for (const v1::Node& node : response.nodes()) {
      if (node.name() == name) return node;
    }
    return {};
  }
  // The message of the first event of this kind, waiting for it.
  std::string WaitForEvent(const std::string& id, const std::string& kind) {
    std::string message;
    Watch(id, [&](const v1::JobUpdate& update) {
      if (!update.has_event() || update.event().kind() != kind) return false;
      message = update.event().message();
      return true;
    });
    return message;
  }
  grpc::Status Drain(const std::string& node, bool drain) {
    grpc::ClientContext context;
    v1::DrainNodeRequest request;
    request.set_node(node);
    request.set_drain(drain);
    v1::DrainNodeResponse response;
    return stub_->DrainNode(&context, request, &response);
  }
  grpc::Status Forget(const std::string& node) {
    grpc::ClientContext context;
    v1::ForgetNodeRequest request;
    request.set_node(node);
    v1::ForgetNodeResponse response;
    return stub_->ForgetNode(&context, request, &response);
  }
  // A whole checkpoint of zeros where the rank would write it.
  static void Save(const v1::RankAssignment& rank, int64_t step) {
    const auto shape = ParseHfConfig(rank.model_config_json(), "test");
    ASSERT_TRUE(shape.ok()) << shape.status();
    const std::string root = rank.spec().checkpoint().folder();
    const JobUid uid(rank.job_uid());
    const std::string temporary = root + "/" + TemporaryCheckpointFolderName(step, rank.epoch(), uid);
    std::vector<PieceData> pieces;
    std::vector<float> zeros;
    const std::vector<UnitSpec> units = ParameterLayout(*shape);
    for (const UnitSpec& unit : units) zeros.resize(std::max(zeros.size(), static_cast<size_t>(unit.num_elements)));
    for (size_t u = 0; u < units.size(); ++u) {
      for (const StateTensor tensor : {StateTensor::kParameter, StateTensor::kExpAvg, StateTensor::kExpAvgSq}) {
        pieces.push_back({static_cast<int>(u), tensor, 0, units[u].num_elements, [&zeros] { return zeros.data(); }});
      }
    }
    std::filesystem::create_directories(root);
    const auto file = WriteCheckpointFile(temporary, "rank-0.bin", DType::kFloat32, pieces);
    ASSERT_TRUE(file.ok()) << file.status();
    CheckpointManifest manifest;
    manifest.job = rank.job_id();
    manifest.job_uid = uid;
    manifest.epoch = rank.epoch();
    manifest.step = step;
    manifest.model = *shape;
    manifest.seed = rank.spec().training().seed();
    manifest.data_digest = rank.data_digest();
    manifest.files = {*file};
    const CheckpointFence fence{.owner = {JobId(rank.job_id()), uid}, .epoch = rank.epoch(), .confirm = [](const std::string&) {
                                  return absl::OkStatus();
                                }};
    const auto published = PublishCheckpoint(root, manifest, fence);
    ASSERT_TRUE(published.ok()) << published.status();
  }

  std::string folder_;
  Config config_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<v1::Motley::Stub> stub_;
  std::vector<v1::JobUpdate> updates_;
};

}  // namespace motley::coordinator
