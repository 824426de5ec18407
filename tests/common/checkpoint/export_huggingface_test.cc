#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "common/checkpoint/byte_tokenizer.h"
#include "common/checkpoint/checkpoint.h"
#include "nlohmann/json.hpp"
#include "tests/common/base/temp_folder.h"
#include "tests/common/checkpoint/checkpoint_fixture.h"

namespace motley {
namespace {

struct Safetensors {
  nlohmann::json header;
  std::string data;
};

Safetensors Parse(const std::string& bytes) {
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);  // this machine is little-endian, as the format is
  return {nlohmann::json::parse(bytes.substr(8, length)), bytes.substr(8 + length)};
}

void ExpectEveryTensor(const ModelShape& model) {
  TempFolder root;
  ASSERT_TRUE(WriteTestCheckpoint(root.path(), 40, model, 0.3).ok());
  const std::string out = root / "out/model";
  const absl::Status exported = ExportHuggingFace(root / NameOf(40), out);
  ASSERT_TRUE(exported.ok()) << exported;
  const Safetensors file = Parse(TempFolder::Read(out + "/model.safetensors"));
  EXPECT_EQ(file.header["__metadata__"]["format"], "pt");
  int64_t bytes = 0, tensors = 0;
  const std::vector<UnitSpec> units = ParameterLayout(model);
  for (int unit = 0; unit < static_cast<int>(units.size()); ++unit) {
    for (const TensorSpec& tensor : units[unit].tensors) {
      const nlohmann::json& entry = file.header.at(tensor.name);
      EXPECT_EQ(entry["dtype"], "F32");
      EXPECT_EQ(entry["shape"].get<std::vector<int64_t>>(), tensor.named_shape());
      const int64_t begin = entry["data_offsets"][0], end = entry["data_offsets"][1];
      ASSERT_EQ(end - begin, tensor.num_elements * 4) << tensor.name;
      for (int64_t i = 0; i < tensor.num_elements; ++i) {
        float value = 0;
        std::memcpy(&value, file.data.data() + begin + tensor.named_element(i) * 4, 4);
        ASSERT_EQ(value, ExpectedValue(unit, StateTensor::kParameter, tensor.offset_elements + i)) << tensor.name << " " << i;
      }
      bytes += end - begin;
      ++tensors;
    }
  }
  EXPECT_EQ(static_cast<int64_t>(file.data.size()), bytes);
  EXPECT_EQ(static_cast<int64_t>(file.header.size()), tensors + 1);
  EXPECT_EQ(file.header.contains("lm_head.weight"), !model.tie_embeddings);
  auto config = ParseHfConfig(TempFolder::Read(out + "/config.json"), "config.json");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(*config, model);
  EXPECT_EQ(TempFolder::Read(out + "/tokenizer.json"), ByteTokenizer());
  EXPECT_EQ(TempFolder::Read(out + "/tokenizer_config.json"), ByteTokenizerConfig(model.max_positions));
  EXPECT_EQ(TempFolder::Read(out + "/generation_config.json"), ByteGenerationConfig(model.max_positions));
}

TEST(ExportHuggingFaceTest, Gpt2WithTiedHead) { ExpectEveryTensor(TinyModel(true)); }
TEST(ExportHuggingFaceTest, LlamaWithOwnHead) { ExpectEveryTensor(TinyLlama()); }
TEST(ExportHuggingFaceTest, Qwen2WithBiases) { ExpectEveryTensor(TinyQwen2()); }

// By hand: row 3 of HuggingFace's c_attn [8, 24] is column 3 of ours.
TEST(ExportHuggingFaceTest, MatricesAreTurnedBack) {
  TempFolder root;
  ASSERT_TRUE(WriteTestCheckpoint(root.path(), 40, TinyModel(true), 0.3).ok());
  ASSERT_TRUE(ExportHuggingFace(root / NameOf(40), root / "out").ok());
  const Safetensors file = Parse(TempFolder::Read(root / "out/model.safetensors"));
  const nlohmann::json& entry = file.header.at("transformer.h.0.attn.c_attn.weight");
  EXPECT_EQ(entry["shape"].get<std::vector<int64_t>>(), (std::vector<int64_t>{8, 24}));
  for (int64_t column = 0; column < 24; ++column) {
    float value = 0;
    std::memcpy(&value, file.data.data() + entry["data_offsets"][0].get<int64_t>() + (3 * 24 + column) * 4, 4);
    EXPECT_EQ(value, ExpectedValue(1, StateTensor::kParameter, column * 8 + 3)) << column;
  }
}

TEST(ExportHuggingFaceTest, RefusesToOverwriteAndDamagedCheckpoints) {
  TempFolder root;
  ASSERT_TRUE(WriteTestCheckpoint(root.path(), 40, TinyModel(true), 0.3).ok());
  const std::string folder = root / NameOf(40);
  ASSERT_TRUE(ExportHuggingFace(folder, root / "out").ok());
  EXPECT_FALSE(std::filesystem::exists(root / "out/model.safetensors.partial"));
  EXPECT_EQ(ExportHuggingFace(folder, root / "out").code(), absl::StatusCode::kAlreadyExists);
  root.Write("cut/model.safetensors.partial", "an export that was killed");
  EXPECT_TRUE(ExportHuggingFace(folder, root / "cut").ok());
  root.Write("step-00000040-gen-3/rank-0.bin", "short");
  EXPECT_EQ(ExportHuggingFace(folder, root / "other").code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ExportHuggingFace(root / "absent", root / "other").code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace motley
