#include "common/model/parameters.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

namespace motley {
namespace {

ModelShape Flavor(const char* name, const char* flavor) { return *ModelFlavor(name, flavor); }

// The published counts.
TEST(ParametersTest, CountsOfKnownModels) {
  EXPECT_EQ(NumParameters(Flavor("gpt2", "124M")), 124439808);
  EXPECT_EQ(NumParameters(Flavor("gpt2", "350M")), 354823168);
  EXPECT_EQ(NumParameters(Flavor("gpt2", "774M")), 774030080);
  EXPECT_EQ(NumParameters(Flavor("gpt2", "1.5B")), 1557611200);
  EXPECT_EQ(NumParameters(Flavor("llama3", "1B")), 1235814400);
  EXPECT_EQ(NumParameters(Flavor("llama3", "3B")), 3212749824);
  EXPECT_EQ(NumParameters(Flavor("llama3", "8B")), 8030261248);
  EXPECT_EQ(NumParameters(Flavor("llama3", "70B")), 70553706496);
  EXPECT_EQ(NumParameters(Flavor("qwen2", "0.5B")), 494032768);
  EXPECT_EQ(NumParameters(Flavor("qwen2", "1.5B")), 1543714304);
  EXPECT_EQ(NumParameters(Flavor("qwen2", "7B")), 7615616512);
}

TEST(ParametersTest, UnitsAreDenseAndNamesUnique) {
  for (const char* name : {"gpt2", "llama3", "qwen2"}) {
    for (const bool tied : {false, true}) {
      ModelShape shape = Flavor(name, "debug");
      shape.tie_embeddings = tied;
      const std::vector<UnitSpec> units = ParameterLayout(shape);
      ASSERT_EQ(static_cast<int64_t>(units.size()), NumUnits(shape));
      EXPECT_EQ(units.front().kind, UnitKind::kEmbedding);
      EXPECT_EQ(units.back().kind, UnitKind::kHead);
      std::set<std::string> names;
      for (size_t u = 0; u < units.size(); ++u) {
        EXPECT_EQ(units[u].layer, units[u].kind == UnitKind::kLayer ? static_cast<int64_t>(u) - 1 : -1);
        int64_t offset = 0;
        for (const TensorSpec& tensor : units[u].tensors) {
          EXPECT_EQ(tensor.offset_elements, offset) << tensor.name;
          int64_t product = 1;
          for (const int64_t extent : tensor.shape) product *= extent;
          EXPECT_EQ(tensor.num_elements, product) << tensor.name;
          EXPECT_TRUE(names.insert(tensor.name).second) << tensor.name;
          offset += tensor.num_elements;
        }
        EXPECT_EQ(units[u].num_elements, offset);
      }
    }
  }
}

std::map<std::string, std::vector<int64_t>> Shapes(const ModelShape& shape) {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const UnitSpec& unit : ParameterLayout(shape)) {
    for (const TensorSpec& tensor : unit.tensors) shapes[tensor.name] = tensor.shape;
  }
  return shapes;
}

// As GPT2LMHeadModel(config).named_parameters() gives them: a tied lm_head.weight is not among them.
TEST(ParametersTest, Gpt2NamesAndShapesAreTransformers) {
  ModelShape shape = Flavor("gpt2", "debug");
  shape.num_layers = 1;
  const std::map<std::string, std::vector<int64_t>> expected = {
      {"transformer.wte.weight", {256, 64}},
      {"transformer.wpe.weight", {256, 64}},
      {"transformer.h.0.ln_1.weight", {64}},
      {"transformer.h.0.ln_1.bias", {64}},
      {"transformer.h.0.attn.c_attn.weight", {64, 192}},
      {"transformer.h.0.attn.c_attn.bias", {192}},
      {"transformer.h.0.attn.c_proj.weight", {64, 64}},
      {"transformer.h.0.attn.c_proj.bias", {64}},
      {"transformer.h.0.ln_2.weight", {64}},
      {"transformer.h.0.ln_2.bias", {64}},
      {"transformer.h.0.mlp.c_fc.weight", {64, 256}},
      {"transformer.h.0.mlp.c_fc.bias", {256}},
      {"transformer.h.0.mlp.c_proj.weight", {256, 64}},
      {"transformer.h.0.mlp.c_proj.bias", {64}},
      {"transformer.ln_f.weight", {64}},
      {"transformer.ln_f.bias", {64}},
  };
  EXPECT_EQ(Shapes(shape), expected);
  shape.tie_embeddings = false;
  EXPECT_EQ(Shapes(shape)["lm_head.weight"], (std::vector<int64_t>{256, 64}));
}

TEST(ParametersTest, LlamaNamesAndShapesAreTransformers) {
  ModelShape shape = Flavor("llama3", "debug");
  shape.num_layers = 1;
  const std::map<std::string, std::vector<int64_t>> expected = {
      {"model.embed_tokens.weight", {256, 64}},
      {"model.layers.0.input_layernorm.weight", {64}},
      {"model.layers.0.self_attn.q_proj.weight", {64, 64}},
      {"model.layers.0.self_attn.k_proj.weight", {32, 64}},
      {"model.layers.0.self_attn.v_proj.weight", {32, 64}},
      {"model.layers.0.self_attn.o_proj.weight", {64, 64}},
      {"model.layers.0.post_attention_layernorm.weight", {64}},
      {"model.layers.0.mlp.gate_proj.weight", {192, 64}},
      {"model.layers.0.mlp.up_proj.weight", {192, 64}},
      {"model.layers.0.mlp.down_proj.weight", {64, 192}},
      {"model.norm.weight", {64}},
      {"lm_head.weight", {256, 64}},
  };
  EXPECT_EQ(Shapes(shape), expected);
}

// The order within a unit is that of the checkpoints on disk: what an engine stacks lies in one piece.
TEST(ParametersTest, Qwen2HasTheBiasesOfTransformersBehindTheirWeights) {
  ModelShape qwen = Flavor("qwen2", "debug"), llama = qwen;
  qwen.num_layers = llama.num_layers = 1;
  llama.family = ModelFamily::kLlama;
  std::map<std::string, std::vector<int64_t>> expected = Shapes(llama);
  expected["model.layers.0.self_attn.q_proj.bias"] = {64};
  expected["model.layers.0.self_attn.k_proj.bias"] = {32};
  expected["model.layers.0.self_attn.v_proj.bias"] = {32};
  EXPECT_EQ(Shapes(qwen), expected);
  std::vector<std::string> attention;
  const std::vector<UnitSpec> units = ParameterLayout(qwen);
  for (const TensorSpec& tensor : units[1].tensors) {
    const size_t at = tensor.name.find("self_attn.");
    if (at != std::string::npos) attention.push_back(tensor.name.substr(at + 10));
    EXPECT_EQ(tensor.init == InitKind::kZeros, tensor.name.ends_with(".bias")) << tensor.name;
  }
  EXPECT_EQ(attention, (std::vector<std::string>{"q_proj.weight", "k_proj.weight", "v_proj.weight", "q_proj.bias", "k_proj.bias",
                                                 "v_proj.bias", "o_proj.weight"}));
}

TEST(ParametersTest, InitialisationFollowsTheFamily) {
  ModelShape shape = Flavor("gpt2", "debug");
  for (const UnitSpec& unit : ParameterLayout(shape)) {
    for (const TensorSpec& tensor : unit.tensors) {
      const bool norm = tensor.name.find("ln_") != std::string::npos;
      if (tensor.name.ends_with(".bias")) {
        EXPECT_EQ(tensor.init, InitKind::kZeros) << tensor.name;
      } else if (norm) {
        EXPECT_EQ(tensor.init, InitKind::kOnes) << tensor.name;
      } else {
        EXPECT_EQ(tensor.init, InitKind::kNormal) << tensor.name;
        const bool residual = tensor.name.find("c_proj") != std::string::npos;
        EXPECT_DOUBLE_EQ(tensor.init_std, residual ? 0.02 / std::sqrt(4.0) : 0.02) << tensor.name;
      }
    }
  }
  for (const UnitSpec& unit : ParameterLayout(Flavor("llama3", "debug"))) {
    for (const TensorSpec& tensor : unit.tensors) {
      EXPECT_EQ(tensor.init, tensor.name.find("norm") != std::string::npos ? InitKind::kOnes : InitKind::kNormal) << tensor.name;
    }
  }
}

}  // namespace
}  // namespace motley
