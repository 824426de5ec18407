// Runs that begin with others' weights: a checkpoint's, an adopted one, a HuggingFace folder's.
#include <filesystem>
#include <fstream>

#include "common/base/fault.h"
#include "common/base/files.h"
#include "common/checkpoint/checkpoint.h"
#include "tests/worker/engine/engine_fixture.h"
#include "worker/engine/checkpointer.h"

namespace motley::engine {
namespace {

// The file `adopt` has named what the run goes on from, or means nothing any more once the job has saved.
TEST_F(EngineTest, AnAdoptIsUsedUp) {
  const std::string root = (folder_ / "checkpoints").string(), adopt = root + "/adopt";
  config_.checkpoint.folder = root;
  config_.training.steps = 2;
  std::vector<RankAssignment> begin = Assign(Gpt2(), {{{8}, 1.0}});
  begin[0].job_uid = JobUid(std::string(32, '1'));
  const std::string aside = adopt + ".done-" + begin[0].job_uid.value();
  std::filesystem::create_directories(root);
  std::ofstream(adopt) << "of nobody";
  FakeKv kv;
  FakeHost host(kv);
  RemoveAbandonedCheckpoints(begin[0], host);
  EXPECT_TRUE(std::filesystem::exists(adopt)) << "it begins with its initial weights";
  const std::string folder = TrainOk(begin).checkpoints.at(2);
  EXPECT_FALSE(std::filesystem::exists(adopt)) << "it has a checkpoint of its own";
  EXPECT_TRUE(std::filesystem::exists(aside));
  std::filesystem::remove(aside);
  std::ofstream(adopt) << "of nobody";
  begin[0].start_step = 2;
  begin[0].epoch = Epoch(2);
  begin[0].resume_from = folder;
  host.newest = false;
  RemoveAbandonedCheckpoints(begin[0], host);
  EXPECT_TRUE(std::filesystem::exists(adopt)) << "a newer generation's";
  host.newest = true;
  RemoveAbandonedCheckpoints(begin[0], host);
  EXPECT_FALSE(std::filesystem::exists(adopt)) << "it goes on";
  EXPECT_TRUE(std::filesystem::exists(aside));
}

// Steps, moments and schedule begin anew: one that starts with the weights of the seed by way of a checkpoint is the same run.
TEST_F(EngineTest, InitialWeightsComeFromACheckpointWithoutItsMomentsAndStep) {
  config_.checkpoint.folder = (folder_ / "checkpoints").string();
  config_.training.steps = 4;
  config_.checkpoint.interval = 1;
  config_.checkpoint.keep_latest_k = 10;
  const Outcome first = TrainOk(Assign(Gpt2(), {{{8}, 1.0}}));
  config_.checkpoint.folder = (folder_ / "second").string();
  config_.checkpoint.initial = (folder_ / "checkpoints").string();
  std::vector<RankAssignment> begin = Assign(Gpt2(), {{{4}, 0.5}, {{4}, 0.5}});
  for (RankAssignment& a : begin) a.resume_from = first.checkpoints.at(3);
  const Outcome second = TrainOk(begin);
  ASSERT_EQ(second.steps[0].size(), 4u);
  // Its first batch is the seed's first: the loss is that of the trained weights, the rate that of the first step.
  EXPECT_LT(second.steps[0][0].loss, first.steps[0][0].loss);
  EXPECT_EQ(second.steps[0][0].lr, first.steps[0][0].lr);
  EXPECT_EQ(second.checkpoints.count(4), 1u);

  begin[0].config.checkpoint.initial.clear();
  const auto end = Train(begin).ends[0];
  EXPECT_NE(end.status().message().find("is of step 3, the epoch starts at step 0"), std::string::npos) << end.status();
}

// The weights of a checkpoint by way of an export are the same start; ranges are cut within tensors and rows.
TEST_F(EngineTest, AHuggingFaceFolderIsTheSameStartAsTheCheckpointThatItWasMadeOf) {
  config_.training.steps = 4;
  config_.checkpoint.interval = 2;
  config_.checkpoint.keep_latest_k = 10;
  for (const ModelShape& model : {Gpt2(), Llama(), Qwen2()}) {
    const std::string name(TraitsOf(model.family).model_type);
    config_.checkpoint.initial.clear();
    config_.checkpoint.folder = (folder_ / name).string();
    const std::string trained = TrainOk(Assign(model, {{{8}, 1.0}})).checkpoints.at(2);
    const std::string weights = (folder_ / (name + "-model")).string();
    ASSERT_TRUE(ExportHuggingFace(trained, weights).ok());
    const auto begin = [&](const std::string& from, const std::string& saves) {
      config_.checkpoint.initial = from;
      config_.checkpoint.folder = (folder_ / (name + saves)).string();
      config_.checkpoint.enable_step_zero_checkpoint = true;
      std::vector<RankAssignment> ranks = Assign(model, {{{2}, 0.237}, {{3}, 0.106}, {{2, 1}, 0.657}});
      for (RankAssignment& a : ranks) a.resume_from = from;
      return TrainOk(ranks);
    };
    const Outcome by_weights = begin(weights, "-a"), by_checkpoint = begin(trained, "-b");
    ASSERT_EQ(by_weights.steps[0].size(), 4u);
    ExpectSameCurve(by_weights.steps[0], by_checkpoint.steps[0], 0);
    // What it began with comes out as it was, and what it was trained to is in the same names.
    EXPECT_NE(ReadManifest(by_weights.checkpoints.at(0))->base, "");
    EXPECT_EQ(ReadManifest(by_checkpoint.checkpoints.at(0))->base, "");
    const std::string out = (folder_ / (name + "-out")).string();
    ASSERT_TRUE(ExportHuggingFace(by_weights.checkpoints.at(0), out).ok());
    for (const char* file : {"model.safetensors", "config.json", "tokenizer.json"}) {
      EXPECT_TRUE(*ReadSmallFile(out + "/" + file, 1 << 24) == *ReadSmallFile(weights + "/" + file, 1 << 24)) << name << file;
    }
    // It goes on without the folder.
    std::filesystem::remove_all(weights);
    std::vector<RankAssignment> rest = Assign(model, {{{4}, 0.5}, {{4}, 0.5}});
    for (RankAssignment& a : rest) {
      a.config.checkpoint.folder = (folder_ / (name + "-a")).string();
      a.start_step = 2;
      a.epoch = Epoch(2);
      a.resume_from = by_weights.checkpoints.at(2);
    }
    const Outcome resumed = TrainOk(rest);
    EXPECT_EQ(ReadManifest(resumed.checkpoints.at(4))->base, ReadManifest(by_weights.checkpoints.at(0))->base);
  }
}

TEST_F(EngineTest, WeightsThatCannotBeTrainedEndTheRunByName) {
  config_.training.steps = 1;
  config_.checkpoint.folder = (folder_ / "checkpoints").string();
  const std::string trained = TrainOk(Assign(Llama(), {{{8}, 1.0}})).checkpoints.at(1);
  const std::string weights = (folder_ / "model").string();
  ASSERT_TRUE(ExportHuggingFace(trained, weights).ok());
  config_.checkpoint.initial = weights;
  const auto end_of = [&](const ModelShape& model) {
    std::vector<RankAssignment> ranks = Assign(model, {{{8}, 1.0}});
    ranks[0].resume_from = weights;
    return Train(ranks).ends[0].status();
  };
  const absl::Status other = end_of(Qwen2());
  EXPECT_EQ(FaultOf(other), Fault::kOurs) << other;
  EXPECT_NE(other.message().find("config.json is of another model"), std::string::npos) << other;
  const auto bytes = std::filesystem::file_size(weights + "/model.safetensors");
  std::fstream file(weights + "/model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(bytes) - 2);  // of the last element of the head, a float64
  file.write("\xff\x7f", 2);
  file.close();
  const absl::Status nan = end_of(Llama());
  EXPECT_EQ(FaultOf(nan), Fault::kOurs) << nan;
  EXPECT_NE(nan.message().find("checkpoint.initial: "), std::string::npos) << nan;
  EXPECT_NE(nan.message().find("is NaN or infinite in float64 at ["), std::string::npos) << nan;
  std::filesystem::resize_file(weights + "/model.safetensors", bytes - 1);
  const absl::Status cut = end_of(Llama());
  EXPECT_EQ(FaultOf(cut), Fault::kOurs) << cut;
  EXPECT_NE(cut.message().find("it is cut off"), std::string::npos) << cut;
  std::filesystem::remove_all(weights);
  EXPECT_EQ(FaultOf(end_of(Llama())), Fault::kStorage) << "not seen now";
}

}  // namespace
}  // namespace motley::engine
