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
  EXPECT_EQ(NumParameters(Flavor("qwen3", "0.6B")), 596049920);
  EXPECT_EQ(NumParameters(Flavor("qwen3", "1.7B")), 1720574976);
  EXPECT_EQ(NumParameters(Flavor("qwen3", "4B")), 4022468096);
  EXPECT_EQ(NumParameters(Flavor("qwen3", "8B")), 8190735360);
  EXPECT_EQ(NumParameters(Flavor("phi4", "14B")), 14659507200);
  EXPECT_EQ(NumParameters(Flavor("smollm3", "3B")), 3075098624);
  EXPECT_EQ(NumParameters(Flavor("olmo2", "1B")), 1484916736);
  EXPECT_EQ(NumParameters(Flavor("olmo2", "7B")), 7298617344);
}

TEST(ParametersTest, UnitsAreDenseAndNamesUnique) {
  for (const char* name : {"gpt2", "llama3", "qwen2", "qwen3", "phi4", "smollm3", "olmo2"}) {
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

// HuggingFace's.
std::map<std::string, std::vector<int64_t>> Shapes(const ModelShape& shape) {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const UnitSpec& unit : ParameterLayout(shape)) {
    for (const TensorSpec& tensor : unit.tensors) shapes[tensor.name] = tensor.named_shape();
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

// What an engine stacks lies in one piece, as in the checkpoints on disk.
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

// The two norms lie side by side: the engine has them as one matrix.
TEST(ParametersTest, Qwen3HasNormsOfQueriesAndKeys) {
  ModelShape qwen = Flavor("qwen3", "debug"), llama = qwen;
  qwen.num_layers = llama.num_layers = 1;
  llama.family = ModelFamily::kLlama;
  std::map<std::string, std::vector<int64_t>> expected = Shapes(llama);
  expected["model.layers.0.self_attn.q_norm.weight"] = {24};
  expected["model.layers.0.self_attn.k_norm.weight"] = {24};
  EXPECT_EQ(Shapes(qwen), expected);
  const std::vector<UnitSpec> units = ParameterLayout(qwen);
  const auto of = [&](std::string_view name) {
    for (const TensorSpec& tensor : units[1].tensors) {
      if (tensor.name.find(name) != std::string::npos) return tensor;
    }
    return TensorSpec();
  };
  EXPECT_EQ(of("q_norm").offset_elements + 24, of("k_norm").offset_elements);
  EXPECT_GE(of("q_norm").offset_elements, units[1].divided_elements) << "each rank has both whole";
  EXPECT_EQ(of("k_norm").init, InitKind::kOnes);
}

TEST(ParametersTest, Phi3HasItsProductsFused) {
  ModelShape phi = Flavor("phi4", "debug"), llama = phi;
  phi.num_layers = llama.num_layers = 1;
  llama.family = ModelFamily::kLlama;
  std::map<std::string, std::vector<int64_t>> expected = Shapes(llama);
  for (const char* name : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.gate_proj", "mlp.up_proj"}) {
    expected.erase(std::string("model.layers.0.") + name + ".weight");
  }
  expected["model.layers.0.self_attn.qkv_proj.weight"] = {128, 64};
  expected["model.layers.0.mlp.gate_up_proj.weight"] = {384, 64};
  EXPECT_EQ(Shapes(phi), expected);
  const std::vector<UnitSpec> units = ParameterLayout(phi);
  EXPECT_EQ(units[1].tensors[0].divided_rows, (std::vector<int64_t>{64, 32, 32}));
  EXPECT_EQ(units[1].tensors[2].divided_rows, (std::vector<int64_t>{192, 192})) << units[1].tensors[2].name;
}

TEST(ParametersTest, Olmo2HasNormsBehindAndOverAllHeads) {
  ModelShape olmo = Flavor("olmo2", "debug"), llama = olmo;
  olmo.num_layers = llama.num_layers = 1;
  llama.family = ModelFamily::kLlama;
  std::map<std::string, std::vector<int64_t>> expected = Shapes(llama);
  expected.erase("model.layers.0.input_layernorm.weight");
  expected["model.layers.0.post_feedforward_layernorm.weight"] = {64};
  expected["model.layers.0.self_attn.q_norm.weight"] = {64};
  expected["model.layers.0.self_attn.k_norm.weight"] = {32};
  EXPECT_EQ(Shapes(olmo), expected);
}

TEST(ParametersTest, Gemma3HasFourNormsThatStartAtZero) {
  ModelShape gemma = Flavor("gemma3", "debug"), qwen = gemma;
  gemma.num_layers = qwen.num_layers = 1;
  qwen.family = ModelFamily::kQwen3;
  std::map<std::string, std::vector<int64_t>> expected = Shapes(qwen);
  expected["model.layers.0.pre_feedforward_layernorm.weight"] = {64};
  expected["model.layers.0.post_feedforward_layernorm.weight"] = {64};
  EXPECT_EQ(Shapes(gemma), expected);
  for (const UnitSpec& unit : ParameterLayout(gemma)) {
    for (const TensorSpec& tensor : unit.tensors) {
      EXPECT_EQ(tensor.init, tensor.shape.size() == 1 ? InitKind::kZeros : InitKind::kNormal) << tensor.name;
    }
  }
}

TEST(ParametersTest, SmolLm3IsStoredAsLlama) {
  ModelShape smol = Flavor("smollm3", "debug"), llama = smol;
  llama.family = ModelFamily::kLlama;
  EXPECT_EQ(Shapes(smol), Shapes(llama));
}

// What tensor parallelism divides, by rows, and behind it what it does not: so a rank's slice is few ranges of the array.
TEST(ParametersTest, DividedTensorsComeFirst) {
  for (const char* name : {"gpt2", "llama3", "qwen2", "qwen3", "phi4", "smollm3", "olmo2"}) {
    ModelShape shape = Flavor(name, "debug");
    shape.tie_embeddings = false;
    for (const UnitSpec& unit : ParameterLayout(shape)) {
      for (const TensorSpec& tensor : unit.tensors) {
        const bool divided = !tensor.divided_rows.empty();
        EXPECT_EQ(divided, tensor.offset_elements < unit.divided_elements) << tensor.name;
        int64_t rows = 0;
        for (const int64_t part : tensor.divided_rows) rows += part;
        EXPECT_EQ(rows, divided ? tensor.shape[0] : 0) << tensor.name;
      }
    }
  }
}

struct Stored {
  std::string name;
  std::vector<int64_t> shape;
  bool transposed;
  std::vector<int64_t> divided_rows;
  bool operator==(const Stored&) const = default;
};
std::vector<Stored> StoredLayer(const ModelShape& shape, std::string_view prefix) {
  std::vector<Stored> stored;
  const std::vector<UnitSpec> units = ParameterLayout(shape);
  for (const TensorSpec& t : units[1].tensors) {
    stored.push_back({t.name.substr(prefix.size()), t.shape, t.transposed, t.divided_rows});
  }
  return stored;
}

// The order of the checkpoints on disk: it stays as it is.
TEST(ParametersTest, StorageOrderOfALayer) {
  EXPECT_EQ(StoredLayer(Flavor("gpt2", "debug"), "transformer.h.0."),
            (std::vector<Stored>{{"attn.c_attn.weight", {192, 64}, true, {64, 64, 64}},
                                 {"attn.c_attn.bias", {192}, false, {64, 64, 64}},
                                 {"attn.c_proj.weight", {64, 64}, false, {64}},
                                 {"mlp.c_fc.weight", {256, 64}, true, {256}},
                                 {"mlp.c_fc.bias", {256}, false, {256}},
                                 {"mlp.c_proj.weight", {256, 64}, false, {256}},
                                 {"ln_1.weight", {64}, false, {}},
                                 {"ln_1.bias", {64}, false, {}},
                                 {"attn.c_proj.bias", {64}, false, {}},
                                 {"ln_2.weight", {64}, false, {}},
                                 {"ln_2.bias", {64}, false, {}},
                                 {"mlp.c_proj.bias", {64}, false, {}}}));
  ModelShape qwen = Flavor("llama3", "debug");
  qwen.family = ModelFamily::kQwen2;
  EXPECT_EQ(StoredLayer(qwen, "model.layers.0."), (std::vector<Stored>{{"self_attn.q_proj.weight", {64, 64}, false, {64}},
                                                                       {"self_attn.k_proj.weight", {32, 64}, false, {32}},
                                                                       {"self_attn.v_proj.weight", {32, 64}, false, {32}},
                                                                       {"self_attn.q_proj.bias", {64}, false, {64}},
                                                                       {"self_attn.k_proj.bias", {32}, false, {32}},
                                                                       {"self_attn.v_proj.bias", {32}, false, {32}},
                                                                       {"self_attn.o_proj.weight", {64, 64}, true, {64}},
                                                                       {"mlp.gate_proj.weight", {192, 64}, false, {192}},
                                                                       {"mlp.up_proj.weight", {192, 64}, false, {192}},
                                                                       {"mlp.down_proj.weight", {192, 64}, true, {192}},
                                                                       {"input_layernorm.weight", {64}, false, {}},
                                                                       {"post_attention_layernorm.weight", {64}, false, {}}}));
}

TEST(ParametersTest, StorageOrderOfTheVocabulary) {
  ModelShape shape = Flavor("gpt2", "debug");
  shape.tie_embeddings = false;
  const std::vector<UnitSpec> units = ParameterLayout(shape);
  const auto names = [](const UnitSpec& unit) {
    std::vector<std::string> all;
    for (const TensorSpec& tensor : unit.tensors) all.push_back(tensor.name);
    return all;
  };
  EXPECT_EQ(names(units.front()), (std::vector<std::string>{"transformer.wte.weight", "transformer.wpe.weight"}));
  EXPECT_EQ(names(units.back()),
            (std::vector<std::string>{"lm_head.weight", "transformer.ln_f.weight", "transformer.ln_f.bias"}));
}

TEST(ParametersTest, ElementsOfATransposedMatrixByName) {
  const std::vector<UnitSpec> units = ParameterLayout(Flavor("gpt2", "debug"));
  const TensorSpec& c_attn = units[1].tensors[0];  // ours [192, 64], HuggingFace's [64, 192]
  EXPECT_EQ(c_attn.named_element(0), 0);
  EXPECT_EQ(c_attn.named_element(1), 192);
  EXPECT_EQ(c_attn.named_element(64), 1);
  EXPECT_EQ(c_attn.named_element(5 * 64 + 3), 3 * 192 + 5);
  const TensorSpec& c_proj = units[1].tensors[2];
  EXPECT_EQ(c_proj.named_element(5 * 64 + 3), 5 * 64 + 3);
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
