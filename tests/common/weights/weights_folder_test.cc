#include "common/weights/weights_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "common/base/beneath.h"
#include "tests/common/checkpoint/checkpoint_fixture.h"
#include "tests/common/weights/weights_fixture.h"

namespace motley {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string Found(const std::string& path) {
  const absl::StatusOr<std::string> found = FindWeightsFolder(path, OpenAnywhere);
  EXPECT_TRUE(found.ok()) << found.status();
  return found.ok() ? *found : "";
}

std::string WhyNot(const TempFolder& folder) {
  const absl::Status status = OpenWeightsFolder(folder.path(), OpenAnywhere).status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(Message(status), HasSubstr(folder.path()));
  return Message(status);
}

// As `hf download` leaves it.
std::string WriteDownload(const TempFolder& folder, const std::string& revision) {
  const std::string blob(64, 'a');
  folder.Write("models--a--b/blobs/" + blob, SafetensorsText(TensorsOfTest({TinyLlama()})));
  folder.Write("models--a--b/refs/main", revision);
  const std::string snapshot = folder / ("models--a--b/snapshots/" + revision);
  folder.Write("models--a--b/snapshots/" + revision + "/config.json", ToHfConfig(TinyLlama()));
  std::filesystem::create_symlink("../../blobs/" + blob, snapshot + "/model.safetensors");
  return snapshot;
}

TEST(WeightsFolderTest, FindsModelsAndDownloadsAndLeavesCheckpointsAlone) {
  const TempFolder folder;
  EXPECT_EQ(Found(folder.path()), "");
  EXPECT_EQ(Found(folder.Write("notes.txt", "x")), "");
  EXPECT_EQ(FindWeightsFolder(folder / "absent", OpenAnywhere).status().code(), absl::StatusCode::kNotFound);
  folder.Write("model/config.json", "{}");
  EXPECT_EQ(Found(folder / "model"), folder / "model");
  folder.Write("torch/pytorch_model.bin", "x");
  EXPECT_EQ(Found(folder / "torch"), folder / "torch");
  folder.Write("llama-cpp/q4.gguf", "x");
  EXPECT_EQ(Found(folder / "llama-cpp"), "");
  // Somebody exported into the folder of a job.
  ASSERT_TRUE(WriteTestCheckpoint(folder / "job", 3, TinyModel(true), 0.5).ok());
  folder.Write("job/config.json", "{}");
  EXPECT_EQ(Found(folder / "job"), "");
  EXPECT_EQ(Found(folder / "job/" + NameOf(3)), "");
}

TEST(WeightsFolderTest, ADownloadStandsForItsOneSnapshot) {
  const TempFolder folder;
  const std::string snapshot = WriteDownload(folder, "abc"), download = folder / "models--a--b";
  EXPECT_EQ(Found(download), snapshot);
  // Its links lead out of the snapshot, and stay beneath the node's root.
  const FileRoots roots({folder.path()});
  const OpenPath beneath = [&](const std::string& path) { return roots.OpenForRead("checkpoint.initial", path); };
  EXPECT_TRUE(OpenWeightsFolder(snapshot, beneath).ok()) << OpenWeightsFolder(snapshot, beneath).status();
  const FileRoots narrow({snapshot});
  const OpenPath outside = [&](const std::string& path) { return narrow.OpenForRead("checkpoint.initial", path); };
  EXPECT_EQ(OpenWeightsFolder(snapshot, outside).status().code(), absl::StatusCode::kPermissionDenied);
  folder.Write("models--a--b/snapshots/def/config.json", "{}");
  const absl::Status status = FindWeightsFolder(download, OpenAnywhere).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(status), AllOf(HasSubstr("2 revisions"), HasSubstr("snapshots/abc"), HasSubstr("snapshots/def")));
}

TEST(WeightsFolderTest, WholeAndInShards) {
  const TempFolder whole, shards;
  const std::vector<TestTensor> tensors = TensorsOfTest({TinyLlama()});
  WriteWhole(whole, TinyLlama(), tensors);
  WriteShards(shards, TinyLlama(), tensors, 3);
  const auto one = OpenWeightsFolder(whole.path(), OpenAnywhere), three = OpenWeightsFolder(shards.path(), OpenAnywhere);
  ASSERT_TRUE(one.ok() && three.ok()) << one.status() << three.status();
  EXPECT_EQ(one->files.size(), 1u);
  EXPECT_EQ(one->index, "");
  EXPECT_EQ(three->files.size(), 3u);
  EXPECT_EQ(one->config, ToHfConfig(TinyLlama()));
  // As in transformers.
  shards.Write("model.safetensors", SafetensorsText(tensors));
  EXPECT_EQ(OpenWeightsFolder(shards.path(), OpenAnywhere)->files.size(), 1u);
}

TEST(WeightsFolderTest, WhatIsMissingIsNamed) {
  const TempFolder folder;
  WriteShards(folder, TinyLlama(), TensorsOfTest({TinyLlama()}), 3);
  std::filesystem::remove(folder / "model-00002-of-00003.safetensors");
  EXPECT_THAT(WhyNot(folder), HasSubstr("lacks model-00002-of-00003.safetensors of the 3 files"));
  folder.Write("model-00002-of-00003.safetensors", "");
  EXPECT_THAT(WhyNot(folder), HasSubstr("model-00002-of-00003.safetensors has 0 bytes"));
  const std::string shard = SafetensorsText({{"x", "F32", {100}, std::string(400, 'x')}});
  folder.Write("model-00002-of-00003.safetensors", shard.substr(0, shard.size() - 1));
  EXPECT_THAT(WhyNot(folder), HasSubstr(absl::StrCat("model-00002-of-00003.safetensors has ", shard.size() - 1, " bytes")));
  folder.Write("model-00002-of-00003.safetensors", SafetensorsText({}));
  EXPECT_THAT(WhyNot(folder), HasSubstr("model-00002-of-00003.safetensors lacks tensor '"));
  for (const auto& [index, what] : {std::pair{R"({"weight_map": {"a": "../b.safetensors"}})", "of the same folder"},
                                    std::pair{R"({"weight_map": {"a": 1}})", "of the same folder, got 1"},
                                    std::pair{R"({"weight_map": {}})", "has no weight_map"}, std::pair{"{", "index.json"}}) {
    folder.Write("model.safetensors.index.json", index);
    EXPECT_THAT(WhyNot(folder), HasSubstr(what));
  }
  std::filesystem::remove(folder / "config.json");
  EXPECT_THAT(WhyNot(folder), HasSubstr("holds no config.json"));
}

TEST(WeightsFolderTest, WhatIsNoSuchModelIsNamed) {
  const TempFolder folder;
  const std::string config = ToHfConfig(TinyLlama());
  folder.Write("config.json", config);
  EXPECT_THAT(WhyNot(folder), HasSubstr("holds neither model.safetensors nor model.safetensors.index.json"));
  folder.Write("adapter_model.safetensors", "x");
  EXPECT_THAT(WhyNot(folder), HasSubstr("holds an adapter"));
  folder.Write("pytorch_model-00001-of-00002.bin", "x");
  EXPECT_THAT(WhyNot(folder), HasSubstr("holds pytorch_model-00001-of-00002.bin and no model.safetensors: only safetensors"));
  folder.Write("model.safetensors", SafetensorsText(TensorsOfTest({TinyLlama()})));
  EXPECT_TRUE(OpenWeightsFolder(folder.path(), OpenAnywhere).ok());
  const std::string begin = config.substr(0, config.rfind('}'));
  folder.Write("config.json", begin + R"(, "quantization_config": {"bits": 4}})");
  EXPECT_THAT(WhyNot(folder), HasSubstr("holds quantised weights"));
  folder.Write("config.json", begin + R"(, "quantization_config": null})");
  EXPECT_TRUE(OpenWeightsFolder(folder.path(), OpenAnywhere).ok());
  for (const std::string key : {"text_config", "llm_config", "language_config", "thinker_config"}) {
    folder.Write("config.json", R"({"model_type": "gemma3", ")" + key + R"(": {}})");
    EXPECT_THAT(WhyNot(folder), HasSubstr("has a " + key + ": the model has several parts"));
  }
  folder.Write("config.json", "<html>");
  EXPECT_THAT(WhyNot(folder), HasSubstr("config.json"));
}

}  // namespace
}  // namespace motley
