// A job that begins with the weights of another one.
#include "common/base/files.h"
#include "tests/coordinator/rpc/cluster.h"

namespace motley::coordinator {
namespace {

class Initial : public ClusterTest {
 protected:
  // Job "old", done after one step, with a checkpoint of step 1.
  void TrainOld() {
    worker_ = Join("n1");
    ASSERT_TRUE(Submit("old", MakeConfig(1)).ok());
    const auto ranks = worker_->WaitForStart();
    ASSERT_FALSE(ranks.empty());
    worker_->SendAll(v1::RankEvent::KIND_READY);
    Save(ranks[0], 1);
    rank_ = ranks[0];
    name_ = CheckpointFolderName(1, rank_.epoch());
    worker_->Step(1);
    worker_->SendAll(v1::RankEvent::KIND_FINISHED);
    WaitForState("old", v1::JOB_STATE_SUCCEEDED);
  }
  std::unique_ptr<FakeWorker> worker_;
  v1::RankAssignment rank_;  // that saved it
  std::string name_;         // of that checkpoint
};

TEST_F(Initial, ByJobOrFolderItBeginsAtStepZeroWithTheNewestWeights) {
  TrainOld();
  worker_.reset();
  const std::string folder = folder_ + "/checkpoints/old";
  for (const std::string& initial : {std::string("old"), folder, folder + "/" + name_}) {
    const std::string id = "new-" + std::to_string(initial.size());
    JobConfig config = MakeConfig(5);
    config.training.seed = 7;
    config.checkpoint.initial = initial;
    ASSERT_TRUE(Submit(id, config).ok());
    auto worker = Join("n-" + id);
    const auto ranks = worker->WaitForStart();
    ASSERT_FALSE(ranks.empty());
    EXPECT_EQ(GetJob(id).newest_checkpoint(), "") << "it has none of its own";
    EXPECT_EQ(ranks[0].job_id(), id);
    EXPECT_EQ(ranks[0].resume_from(), folder + "/" + name_);
    EXPECT_EQ(ranks[0].start_step(), 0);
    EXPECT_EQ(Submit(id, config).error_code(), grpc::StatusCode::OK) << "the same body";
    ASSERT_TRUE(StopJob(id).ok());
    WaitForState(id, v1::JOB_STATE_STOPPED);
  }
}

// Another cluster's job of the id saves in the same folder, and somebody has copied a checkpoint to the highest number.
TEST_F(Initial, AJobMeansWhatThatJobMade) {
  TrainOld();
  worker_.reset();
  const std::string folder = folder_ + "/checkpoints/old", theirs = CheckpointFolderName(7, rank_.epoch() + 50);
  std::filesystem::copy(folder + "/" + name_, folder + "/" + CheckpointFolderName(1, rank_.epoch() + 60),
                        std::filesystem::copy_options::recursive);
  rank_.set_job_uid(std::string(32, 'f'));
  rank_.set_epoch(rank_.epoch() + 50);
  Save(rank_, 7);
  JobConfig config = MakeConfig(5);
  config.checkpoint.initial = "old";
  ASSERT_TRUE(Submit("new", config).ok());
  auto worker = Join("n-new");
  const auto ranks = worker->WaitForStart();
  ASSERT_FALSE(ranks.empty());
  EXPECT_EQ(ranks[0].resume_from(), folder + "/" + name_);
  std::string said;
  Watch("new", [&](const v1::JobUpdate& update) {
    if (update.has_event() && update.event().kind() == "checkpoint_skipped") said += update.event().message() + "\n";
    return said.find("was renamed") != std::string::npos &&
           said.find(theirs + " was made by job 'old' (uid ffff") != std::string::npos;
  });
  ASSERT_TRUE(StopJob("new").ok());
  WaitForState("new", v1::JOB_STATE_STOPPED);
  // Where its own are gone, another's are not taken for them.
  std::filesystem::remove_all(folder + "/" + name_);
  std::filesystem::remove_all(folder + "/" + CheckpointFolderName(1, rank_.epoch() + 10));
  ASSERT_TRUE(Submit("newer", config).ok());
  const v1::Job job = WaitForState("newer", v1::JOB_STATE_FAILED);
  EXPECT_NE(job.reason().find("checkpoint.initial: checkpoint " + folder + "/" + theirs + " was made by job 'old' (uid ffff"),
            std::string::npos)
      << job.reason();
}

TEST_F(Initial, AnotherModelOrAnUnknownJobIsRefusedAtSubmit) {
  TrainOld();
  JobConfig config = MakeConfig(5);
  config.checkpoint.initial = "older";
  grpc::Status status = Submit("new", config);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find(
                "job 'older' is not known; give a job of `motley list`, or a folder, which has a slash: ./older"),
            std::string::npos)
      << status.error_message();
  config.checkpoint.initial = "old";
  config.model.config_json.clear();
  status = Submit("new", config);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("; a job's weights come without its [model]: say it here, too"), std::string::npos)
      << status.error_message();
}

TEST_F(Initial, AFolderOfAnotherModelOrWithoutCheckpointsFailsTheJobBeforeItsRanksStart) {
  TrainOld();
  JobConfig config = MakeConfig(5);
  config.checkpoint.initial = folder_ + "/checkpoints/old";
  config.model.config_json.clear();
  ASSERT_TRUE(Submit("other", config).ok());
  v1::Job job = WaitForState("other", v1::JOB_STATE_FAILED);
  EXPECT_NE(job.reason().find("checkpoints/old/" + name_ + " is of another model"), std::string::npos) << job.reason();
  config = MakeConfig(5);
  config.checkpoint.initial = folder_ + "/checkpoints";
  ASSERT_TRUE(Submit("empty", config).ok());
  job = WaitForState("empty", v1::JOB_STATE_FAILED);
  EXPECT_EQ(job.reason().rfind("checkpoint.initial: ", 0), 0u) << job.reason();
  EXPECT_EQ(job.error_code(), static_cast<int>(absl::StatusCode::kNotFound));
}

// Written by programs that workers of an older build do not know, who report no digest.
TEST_F(Initial, WeightsOfHuggingFaceThatNoNodeReadsAreSaidToBeSo) {
  TrainOld();
  for (const char* file : {"config.json", "model.safetensors"}) {
    const std::string folder = folder_ + "/export-" + file;
    ASSERT_TRUE(MakeFolders(folder).ok());
    ASSERT_TRUE(WriteFileDurably(folder + "/" + file, "{}").ok());
    JobConfig config = MakeConfig(5);
    config.checkpoint.initial = folder;
    const std::string id = std::string(file).substr(0, 5) + "-job";
    ASSERT_TRUE(Submit(id, config).ok());
    const v1::Job job = WaitForState(id, v1::JOB_STATE_FAILED);
    EXPECT_EQ(job.reason().rfind("checkpoint.initial: " + folder + " holds ", 0), 0u) << job.reason();
    EXPECT_NE(job.reason().find("the workers must be of a build that reads safetensors: upgrade them"), std::string::npos)
        << job.reason();
    EXPECT_EQ(job.error_code(), static_cast<int>(absl::StatusCode::kNotFound));
  }
}

// The folder is on the nodes alone.
TEST_F(Initial, AJobBeginsWithWeightsThatTheNodesSee) {
  FakeWorker::Options options;
  options.initial_digest = "base";
  auto one = Join("n1", options), two = Join("n2", options);
  options.initial_digest = "instruct";
  auto other = Join("n3", options);
  JobConfig config = MakeConfig(5);
  config.checkpoint.initial = "/models/base";
  ASSERT_TRUE(Submit("new", config).ok());
  const auto ranks = one->WaitForStart();
  ASSERT_FALSE(ranks.empty());
  EXPECT_EQ(ranks[0].resume_from(), "/models/base");
  EXPECT_EQ(ranks[0].start_step(), 0);
  EXPECT_EQ(GetJob("new").newest_checkpoint(), "");
  for (const std::string& device : ranks[0].device_ids()) EXPECT_NE(device.substr(0, 3), "n3/") << "it holds other weights";
}

TEST_F(Initial, AFolderThatTheCoordinatorSeesIsComparedWithTheJobsModel) {
  FakeWorker::Options options;
  options.initial_digest = "base";
  auto worker = Join("n1", options);
  const std::string folder = folder_ + "/model";
  ASSERT_TRUE(MakeFolders(folder).ok());
  ModelShape model = *ModelFlavor("llama3", "debug");
  model.num_layers = 3;
  ASSERT_TRUE(WriteFileDurably(folder + "/config.json", ToHfConfig(model)).ok());
  JobConfig config = MakeConfig(5);
  config.checkpoint.initial = folder;
  ASSERT_TRUE(Submit("new", config).ok());
  const v1::Job job = WaitForState("new", v1::JOB_STATE_FAILED);
  EXPECT_NE(job.reason().find("checkpoint.initial " + folder + " is of another model, with "), std::string::npos) << job.reason();
  EXPECT_NE(job.reason().find("leave out [model]"), std::string::npos) << job.reason();
}

}  // namespace
}  // namespace motley::coordinator
