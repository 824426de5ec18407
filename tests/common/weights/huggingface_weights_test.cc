#include "common/weights/huggingface_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <random>

#include "tests/common/checkpoint/checkpoint_fixture.h"
#include "tests/common/weights/weights_fixture.h"

namespace motley {
namespace {

using testing::AllOf;
using testing::HasSubstr;

ModelShape TiedLlama() {
  ModelShape model = TinyLlama();
  model.tie_embeddings = true;
  return model;
}

ModelShape TinyOf(ModelFamily family) {
  ModelShape model = TinyLlama();
  model.family = family;
  return model;
}

// Elements [begin, end) of a unit as the definition has them.
template <typename T>
std::vector<T> ByDefinition(const UnitSpec& unit, int64_t begin, int64_t end) {
  std::vector<T> values;
  for (const TensorSpec& spec : unit.tensors) {
    for (int64_t i = 0; i < spec.num_elements; ++i) {
      const int64_t at = spec.offset_elements + i;
      if (at >= begin && at < end) values.push_back(TestValue(spec.name, spec.named_element(i)));
    }
  }
  return values;
}

template <typename T>
void ExpectRanges(const std::string& folder, const ModelShape& model) {
  const DType dtype = sizeof(T) == 8 ? DType::kFloat64 : DType::kFloat32;
  auto weights = HuggingFaceWeights::Open(folder, model, dtype, OpenAnywhere);
  ASSERT_TRUE(weights.ok()) << weights.status();
  const std::vector<UnitSpec> units = ParameterLayout(model);
  std::mt19937 random(5);
  for (int unit = 0; unit < static_cast<int>(units.size()); ++unit) {
    const int64_t all = units[unit].num_elements;
    for (int tries = 0; tries < 30; ++tries) {
      const int64_t begin = tries == 0 ? 0 : static_cast<int64_t>(random()) % all;
      const int64_t end = tries == 0 ? all : begin + 1 + static_cast<int64_t>(random()) % (all - begin);
      std::vector<T> values(static_cast<size_t>(end - begin), T{-7777});
      const absl::Status read = weights->Read(unit, begin, end, values.data());
      ASSERT_TRUE(read.ok()) << read;
      ASSERT_EQ(values, ByDefinition<T>(units[unit], begin, end)) << "unit " << unit << " " << begin << ".." << end;
    }
  }
}

absl::Status OpenStatus(const TempFolder& folder, const ModelShape& model) {
  return HuggingFaceWeights::Open(folder.path(), model, DType::kFloat32, OpenAnywhere).status();
}

absl::Status ReadAll(const TempFolder& folder, const ModelShape& model) {
  auto weights = HuggingFaceWeights::Open(folder.path(), model, DType::kFloat32, OpenAnywhere);
  if (!weights.ok()) return weights.status();
  for (int unit = 0; unit < NumUnits(model); ++unit) {
    std::vector<float> values(static_cast<size_t>(ParameterLayout(model)[unit].num_elements));
    if (absl::Status read = weights->Read(unit, 0, static_cast<int64_t>(values.size()), values.data()); !read.ok()) return read;
  }
  return absl::OkStatus();
}

TEST(HuggingFaceWeightsTest, AnyRangeOfAnyFamilyInAnyTypeIsInOurOrder) {
  const std::function<DType(const std::string&)> types[] = {
      [](const std::string&) { return DType::kBFloat16; },
      [](const std::string&) { return DType::kFloat16; },
      [](const std::string&) { return DType::kFloat32; },
      [](const std::string&) { return DType::kFloat64; },
      [](const std::string& name) { return name.find("norm") != std::string::npos ? DType::kFloat32 : DType::kBFloat16; },
  };
  for (const ModelShape& model :
       {TinyModel(true), TinyModel(false), TinyLlama(), TiedLlama(), TinyQwen2(), TinyOf(ModelFamily::kPhi3),
        TinyOf(ModelFamily::kQwen3), TinyOf(ModelFamily::kSmolLm3), TinyOf(ModelFamily::kOlmo2)}) {
    for (size_t type = 0; type < std::size(types); ++type) {
      const TempFolder whole, shards;
      const std::vector<TestTensor> tensors = TensorsOfTest({model, types[type], type % 2 == 1});
      WriteWhole(whole, model, tensors);
      ExpectRanges<float>(whole.path(), model);
      WriteShards(shards, model, tensors, 3);
      ExpectRanges<double>(shards.path(), model);
    }
  }
}

// Strips of many rows and of one, and reads of whole rows and of parts of them.
TEST(HuggingFaceWeightsTest, LargerMatricesAreTurnedInStrips) {
  ModelShape model = TinyLlama();
  model.hidden_size = 80, model.num_heads = 5, model.num_kv_heads = 1, model.head_dim = 16, model.intermediate_size = 200;
  model.num_layers = 1;
  const TempFolder folder;
  WriteWhole(folder, model, TensorsOfTest({model}));
  ExpectRanges<float>(folder.path(), model);
  ExpectRanges<double>(folder.path(), model);
}

// "transformer.wte.weight" by hand: GPT-2's Conv1D is [in, out], and we have its queries' rows first.
TEST(HuggingFaceWeightsTest, AnElementByHand) {
  const ModelShape model = TinyModel(true);
  const TempFolder folder;
  WriteWhole(folder, model, TensorsOfTest({model}));
  auto weights = HuggingFaceWeights::Open(folder.path(), model, DType::kFloat32, OpenAnywhere);
  ASSERT_TRUE(weights.ok());
  float value = 0;
  ASSERT_TRUE(weights->Read(1, 5 * 8 + 3, 5 * 8 + 4, &value).ok());  // output 5, input 3
  EXPECT_EQ(value, TestValue("transformer.h.0.attn.c_attn.weight", 3 * 24 + 5));
}

TEST(HuggingFaceWeightsTest, StoredConstantsArePassedOver) {
  const TempFolder gpt, llama;
  std::vector<TestTensor> tensors = TensorsOfTest({.model = TinyModel(true), .without_prefix = true});
  tensors.push_back({"h.0.attn.bias", "U8", {1, 1, 2, 2}, "abcd"});
  tensors.push_back({"h.1.attn.masked_bias", "F32", {}, "abcd"});
  WriteWhole(gpt, TinyModel(true), tensors);
  ExpectRanges<float>(gpt.path(), TinyModel(true));
  tensors = TensorsOfTest({TinyLlama()});
  tensors.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", "F32", {1}, "abcd"});
  WriteWhole(llama, TinyLlama(), tensors);
  ExpectRanges<float>(llama.path(), TinyLlama());
}

TEST(HuggingFaceWeightsTest, OfTiedTensorsBothMayBeThereIfTheyAreOne) {
  const TempFolder folder;
  std::vector<TestTensor> tensors = TensorsOfTest({TiedLlama()});
  tensors.push_back(tensors[0]);
  tensors.back().name = "lm_head.weight";
  WriteWhole(folder, TiedLlama(), tensors);
  ExpectRanges<float>(folder.path(), TiedLlama());
  tensors.back().bytes[100] ^= 1;
  WriteWhole(folder, TiedLlama(), tensors);
  const absl::Status status = ReadAll(folder, TiedLlama());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(status), AllOf(HasSubstr("'lm_head.weight' that differs from 'model.embed_tokens.weight'"),
                                     HasSubstr("tie_word_embeddings"), HasSubstr(folder.path())));
}

TEST(HuggingFaceWeightsTest, OtherTensorsThanTheModelsAreNamed) {
  const auto refusal = [](const std::function<void(std::vector<TestTensor>&)>& change) {
    const TempFolder folder;
    std::vector<TestTensor> tensors = TensorsOfTest({TinyLlama()});
    change(tensors);
    WriteWhole(folder, TinyLlama(), tensors);
    const absl::Status status = OpenStatus(folder, TinyLlama());
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(Message(status), HasSubstr(folder.path()));
    return Message(status);
  };
  EXPECT_THAT(refusal([](auto& tensors) { tensors.erase(tensors.begin()); }), HasSubstr("lacks model.embed_tokens.weight; give"));
  EXPECT_THAT(refusal([](auto& tensors) {
                std::erase_if(tensors, [](const TestTensor& tensor) { return tensor.name == "lm_head.weight"; });
              }),
              HasSubstr("lacks lm_head.weight"));
  EXPECT_THAT(refusal([](auto& tensors) {
                tensors.push_back({"model.layers.0.self_attn.q_norm.weight", "F32", {1}, "abcd"});
              }),
              HasSubstr("holds model.layers.0.self_attn.q_norm.weight, which the model has not"));
  EXPECT_THAT(refusal([](auto& tensors) {
                tensors[0].shape = {8, 256};
              }),
              HasSubstr("tensor 'model.embed_tokens.weight' has shape [8, 256]; the model's has [256, 8]"));
  EXPECT_THAT(refusal([](auto& tensors) { tensors[0].type = "I16"; }), HasSubstr("is of type I16, which is not trained"));
  EXPECT_THAT(refusal([](auto& tensors) {
                tensors.push_back(tensors[0]);
                tensors.back().name = "embed_tokens.weight";
              }),
              HasSubstr("holds 'embed_tokens.weight' twice"));
}

// What is said of the folder whose tensor `name` has `value` as its element `element`.
std::string WithValue(DType dtype, const std::string& name, size_t element, float value) {
  const TempFolder folder;
  std::vector<TestTensor> tensors = TensorsOfTest({TinyLlama(), [&](const std::string&) { return dtype; }});
  TestTensor& tensor = *std::find_if(tensors.begin(), tensors.end(), [&](const TestTensor& t) { return t.name == name; });
  const std::string bad = TestBytes(dtype, {value});
  tensor.bytes.replace(element * bad.size(), bad.size(), bad);
  WriteWhole(folder, TinyLlama(), tensors);
  const absl::Status status = ReadAll(folder, TinyLlama());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return Message(status);
}

TEST(HuggingFaceWeightsTest, WhatIsNotFiniteIsNamedWithItsPlace) {
  using Limits = std::numeric_limits<float>;
  for (const DType dtype : {DType::kBFloat16, DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    for (const float value : {Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity()}) {
      EXPECT_THAT(WithValue(dtype, "model.layers.1.mlp.down_proj.weight", 3 * 16 + 5, value),  // [8, 16], turned
                  HasSubstr("'model.layers.1.mlp.down_proj.weight' is NaN or infinite in float32 at [3, 5]"));
      EXPECT_THAT(WithValue(dtype, "model.norm.weight", 7, value),
                  HasSubstr("'model.norm.weight' is NaN or infinite in float32 at [7]"));
    }
  }
}

TEST(HuggingFaceWeightsTest, AnotherModelThanTheJobsIsRefused) {
  const TempFolder folder;
  WriteWhole(folder, TinyLlama(), TensorsOfTest({TinyLlama()}));
  const absl::Status status = OpenStatus(folder, TiedLlama());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(status), HasSubstr("config.json is of another model, with"));
}

// What no range asked for is not read, and a file that is cut under the reader is an error.
TEST(HuggingFaceWeightsTest, OnlyWhatIsAskedForIsRead) {
  const TempFolder folder;
  const ModelShape model = TinyLlama();
  WriteShards(folder, model, TensorsOfTest({model}), 3);
  auto weights = HuggingFaceWeights::Open(folder.path(), model, DType::kFloat32, OpenAnywhere);
  ASSERT_TRUE(weights.ok());
  // The embedding is the first tensor of the first file.
  const int64_t data = weights->folder().files[0].tensors[0].end;
  for (const SafetensorsFile& file : weights->folder().files) {
    ASSERT_EQ(::truncate(file.path.c_str(), file.path == weights->folder().files[0].path ? data : 0), 0);
  }
  std::vector<float> values(256 * 8);
  EXPECT_TRUE(weights->Read(0, 0, 256 * 8, values.data()).ok());
  EXPECT_EQ(weights->Read(1, 0, 1, values.data()).code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace motley
