#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>

#include "common/checkpoint/byte_tokenizer.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/checkpoint_manifest.h"
#include "common/weights/base_model.h"
#include "nlohmann/json.hpp"
#include "tests/common/base/temp_folder.h"
#include "tests/common/checkpoint/checkpoint_fixture.h"
#include "tests/common/weights/weights_fixture.h"

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
  root.Write("own/README.md", "written by hand");
  const absl::Status own = ExportHuggingFace(folder, root / "own");
  EXPECT_EQ(own.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_NE(Message(own).find("own/README.md exists; choose another folder or remove it"), std::string::npos) << own;
  EXPECT_EQ(TempFolder::Read(root / "own/README.md"), "written by hand");
  EXPECT_FALSE(std::filesystem::exists(root / "own/config.json"));
  root.Write("cut/model.safetensors.partial", "an export that was killed");
  EXPECT_TRUE(ExportHuggingFace(folder, root / "cut").ok());
  root.Write("step-00000040-gen-3/rank-0.bin", "short");
  EXPECT_EQ(ExportHuggingFace(folder, root / "other").code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ExportHuggingFace(root / "absent", root / "other").code(), absl::StatusCode::kNotFound);
}

// A checkpoint whose base is that of `weights`, with the parameters of its folder.
std::string WriteImported(const TempFolder& root, const TestWeights& weights, const std::vector<SmallFile>& files) {
  const TempFolder folder;
  WriteWhole(folder, weights.model, TensorsOfTest(weights));
  auto source = HuggingFaceWeights::Open(folder.path(), weights.model, DType::kFloat32, OpenAnywhere);
  EXPECT_TRUE(source.ok()) << source.status();
  BaseModel base = BaseOf(*source);
  base.files = files;
  CheckpointManifest manifest{.job = "job-1", .epoch = 3, .step = 0, .model = weights.model};
  const NamedBase named(base);
  EXPECT_TRUE(KeepBase(named, root.path(), 3, JobUid()).ok());
  manifest.base = named.name;
  std::vector<std::vector<float>> arrays;
  for (int unit = 0; unit < NumUnits(weights.model); ++unit) {
    arrays.emplace_back(static_cast<size_t>(ParameterLayout(weights.model)[unit].num_elements));
    EXPECT_TRUE(source->Read(unit, 0, static_cast<int64_t>(arrays[unit].size()), arrays[unit].data()).ok());
  }
  std::vector<PieceData> pieces;
  for (int unit = 0; unit < NumUnits(weights.model); ++unit) {
    for (int t = 0; t < kNumStateTensors; ++t) {
      pieces.push_back({unit, static_cast<StateTensor>(t), 0, static_cast<int64_t>(arrays[unit].size()),
                        [&arrays, unit] { return arrays[unit].data(); }});
    }
  }
  const std::string temporary = root / TemporaryCheckpointFolderName(0, 3);
  manifest.files.push_back(*WriteCheckpointFile(temporary, "rank-0.bin", DType::kFloat32, pieces));
  const auto published = PublishCheckpoint(root.path(), manifest, NewestEpoch());
  EXPECT_TRUE(published.ok()) << published.status();
  return *published;
}

void ExpectSameTensors(const std::string& out, const std::vector<TestTensor>& tensors) {
  const auto folder = OpenWeightsFolder(out, OpenAnywhere);
  ASSERT_TRUE(folder.ok()) << folder.status();
  size_t found = 0;
  for (const SafetensorsFile& file : folder->files) {
    const std::string bytes = TempFolder::Read(file.path);
    for (const StoredTensor& tensor : file.tensors) {
      const auto same =
          std::find_if(tensors.begin(), tensors.end(), [&](const TestTensor& each) { return each.name == tensor.name; });
      ASSERT_NE(same, tensors.end()) << tensor.name;
      EXPECT_EQ(tensor.type, same->type) << tensor.name;
      EXPECT_EQ(tensor.shape, same->shape) << tensor.name;
      EXPECT_TRUE(bytes.substr(static_cast<size_t>(tensor.begin), static_cast<size_t>(tensor.end - tensor.begin)) == same->bytes)
          << tensor.name;
      ++found;
    }
  }
  EXPECT_EQ(found, tensors.size());
}

TEST(ExportHuggingFaceTest, AnUntouchedImportComesOutAsItWas) {
  const std::function<DType(const std::string&)> types[] = {
      [](const std::string&) { return DType::kBFloat16; }, [](const std::string&) { return DType::kFloat16; },
      [](const std::string&) { return DType::kFloat32; },
      [](const std::string& name) { return name.find("norm") == std::string::npos ? DType::kFloat16 : DType::kFloat64; }};
  for (const ModelShape& model : {TinyModel(true), TinyModel(false), TinyLlama(), TinyQwen2()}) {
    for (size_t type = 0; type < std::size(types); ++type) {
      const TempFolder root;
      const TestWeights weights{model, types[type], type % 2 == 1};
      const std::string config = ToHfConfig(model) + "\n";
      const std::string folder = WriteImported(root, weights, {{"config.json", config}, {"tokenizer.json", "{}"}});
      ASSERT_TRUE(ExportHuggingFace(folder + (type == 0 ? "/" : ""), root / "out").ok());
      ExpectSameTensors(root / "out", TensorsOfTest(weights));
      EXPECT_EQ(TempFolder::Read(root / "out/config.json"), config);
      EXPECT_EQ(TempFolder::Read(root / "out/tokenizer.json"), "{}");
      EXPECT_FALSE(std::filesystem::exists(root / "out/generation_config.json")) << "the folder had none";
      EXPECT_FALSE(std::filesystem::exists(root / "out/model.safetensors.index.json"));
    }
  }
}

TEST(ExportHuggingFaceTest, LargerModelsAreInShards) {
  const TempFolder root;
  const std::string folder = WriteImported(root, {TinyLlama()}, {{"config.json", ToHfConfig(TinyLlama())}});
  ASSERT_TRUE(ExportHuggingFace(folder, root / "out", {}, 3000).ok());
  EXPECT_TRUE(std::filesystem::exists(root / "out/model.safetensors.index.json"));
  EXPECT_FALSE(std::filesystem::exists(root / "out/model.safetensors"));
  ExpectSameTensors(root / "out", TensorsOfTest({TinyLlama()}));
  EXPECT_EQ(ExportHuggingFace(folder, root / "out").code(), absl::StatusCode::kAlreadyExists);
}

TEST(ExportHuggingFaceTest, WithoutItsBaseACheckpointIsNotExported) {
  const TempFolder root, other;
  const std::string folder = WriteImported(root, {TinyLlama()}, {{"config.json", ToHfConfig(TinyLlama())}});
  const std::string copy = other / NameOf(0);
  std::filesystem::copy(folder, copy, std::filesystem::copy_options::recursive);
  const absl::Status status = ExportHuggingFace(copy, root / "out");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(Message(status).find("goes with the folder base-"), std::string::npos) << status;
  EXPECT_FALSE(std::filesystem::exists(root / "out"));
}

TEST(ExportHuggingFaceTest, TheCardIsOursAndTheBasesIsBesideIt) {
  const TempFolder root;
  const std::string card = "---\nlicense: apache-2.0\n---\n# Theirs\n";
  const std::string folder = WriteImported(root, {TinyLlama()}, {{"README.md", card}, {"config.json", ToHfConfig(TinyLlama())}});
  ASSERT_TRUE(ExportHuggingFace(folder, root / "out", {.date = "2026-11-28", .base_model = "Tiny"}).ok());
  EXPECT_EQ(TempFolder::Read(root / "out/README.base.md"), card);
  root.Write("again/README.base.md", card);  // as an export that was killed leaves it
  EXPECT_TRUE(ExportHuggingFace(folder, root / "again").ok());
  for (const std::string other : {"short", "a card of somebody else's that is longer than the base's"}) {
    root.Write("other/README.base.md", other);
    EXPECT_EQ(ExportHuggingFace(folder, root / "other").code(), absl::StatusCode::kAlreadyExists);
    EXPECT_EQ(TempFolder::Read(root / "other/README.base.md"), other);
  }
  const std::string ours = TempFolder::Read(root / "out/README.md");
  EXPECT_NE(ours.find("\nlicense: apache-2.0\n"), std::string::npos) << ours;
  EXPECT_NE(ours.find("\n| exported | 2026-11-28 |\n| base model | Tiny |\n"), std::string::npos) << ours;
}

// Tokens of another program's tokenizer, and weights from the seed.
TEST(ExportHuggingFaceTest, ATokenizerThatCameWithTheTokensStandsForTheBytes) {
  const TempFolder root;
  ASSERT_TRUE(WriteTestCheckpoint(root.path(), 40, TinyLlama(), 0.3).ok());
  auto manifest = ReadManifest(root / NameOf(40));
  ASSERT_TRUE(manifest.ok());
  const std::string tokenizer = R"({"model": {"vocab": {"</s>": 2}}})";
  const NamedBase named(BaseModel{{}, {{"tokenizer.json", tokenizer}, {"tokenizer_config.json", R"({"eos_token": "</s>"})"}}});
  ASSERT_TRUE(KeepBase(named, root.path(), 3, JobUid()).ok());
  manifest->base = named.name;
  root.Write(NameOf(40) + "/manifest.json", ManifestToJson(*manifest));
  ASSERT_TRUE(ExportHuggingFace(root / NameOf(40), root / "out").ok());
  EXPECT_EQ(TempFolder::Read(root / "out/tokenizer.json"), tokenizer);
  EXPECT_FALSE(std::filesystem::exists(root / "out/README.base.md"));
  EXPECT_FALSE(std::filesystem::exists(root / "out/generation_config.json"));
  const auto config = nlohmann::json::parse(TempFolder::Read(root / "out/config.json"));
  EXPECT_EQ(config.at("eos_token_id"), 2);
  EXPECT_TRUE(config.at("bos_token_id").is_null());
  EXPECT_EQ(*ParseHfConfig(TempFolder::Read(root / "out/config.json"), "c"), TinyLlama());
  EXPECT_EQ(Parse(TempFolder::Read(root / "out/model.safetensors")).header["lm_head.weight"]["dtype"], "F32");
}

}  // namespace
}  // namespace motley
