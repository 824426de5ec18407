#include "common/model/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "absl/strings/str_cat.h"
#include "tests/common/model/small_config.h"

namespace motley {
namespace {

using ::testing::HasSubstr;

TEST(ModelTest, EveryFlavorRoundTripsThroughConfigJson) {
  for (const char* name : {"gpt2", "llama3", "qwen2", "qwen3", "phi4", "smollm3", "olmo2", "gemma3"}) {
    EXPECT_GE(KnownFlavors(name).size(), 3u);
    for (const std::string& flavor : KnownFlavors(name)) {
      const auto shape = ModelFlavor(name, flavor);
      ASSERT_TRUE(shape.ok()) << shape.status();
      const auto read = ParseHfConfig(ToHfConfig(*shape), "config.json");
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_EQ(*read, *shape) << name << " " << flavor;
    }
  }
}

TEST(ModelTest, UnusualShapesRoundTripToo) {
  ModelShape gpt2 = *ModelFlavor("gpt2", "debug");
  gpt2.tie_embeddings = false;
  gpt2.intermediate_size = 100;
  gpt2.norm_eps = 1.25e-7;
  ModelShape llama = *ModelFlavor("llama3", "debug");
  llama.tie_embeddings = true;
  llama.head_dim = 48;
  llama.rope_theta = 12345.678;
  ModelShape qwen = llama;
  qwen.family = ModelFamily::kQwen2;
  ModelShape scaled = llama;
  scaled.rope_scaling = {.factor = 8, .low_freq_factor = 1.5, .high_freq_factor = 5, .original_max_positions = 64};
  ModelShape phi = llama, qwen3 = llama, smol = llama;
  phi.family = ModelFamily::kPhi3, qwen3.family = ModelFamily::kQwen3, smol.family = ModelFamily::kSmolLm3;
  ModelShape olmo = llama;
  olmo.family = ModelFamily::kOlmo2;
  ModelShape chosen = smol;
  chosen.layer_kinds = {{.rotary = false}, {.rotary = true}};
  ModelShape gemma = llama, one_base = *ModelFlavor("gemma3", "debug");
  gemma.family = ModelFamily::kGemma3;  // without windows
  gemma.query_scalar = 100;
  one_base.layer_kinds[0].rope_theta = 0;
  ModelShape scaled_gemma = *ModelFlavor("gemma3", "debug");
  scaled_gemma.rope_scaling = scaled.rope_scaling;
  for (const ModelShape& shape : {gpt2, llama, qwen, scaled, phi, qwen3, smol, chosen, olmo, gemma, one_base, scaled_gemma})
    EXPECT_EQ(*ParseHfConfig(ToHfConfig(shape), "c"), shape);
}

TEST(ModelTest, UnknownNamesGetTheNearestAndTheList) {
  const absl::Status flavor = ModelFlavor("gpt2", "124m").status();
  EXPECT_EQ(flavor.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(flavor.message()),
              HasSubstr("flavor of model gpt2 '124m' is not known; did you mean '124M'? Known: debug, "));
  const absl::Status name = ModelFlavor("llama", "debug").status();
  EXPECT_EQ(name.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(
      std::string(name.message()),
      HasSubstr(
          "model name 'llama' is not known; did you mean 'llama3'? Known: gpt2, llama3, qwen2, qwen3, phi4, smollm3, olmo2, "
          "gemma3"));
  EXPECT_THAT(std::string(ModelFlavor("gpt2", "zzzzzzzz").status().message()), HasSubstr("is not known; Known: debug"));
  EXPECT_TRUE(KnownFlavors("bert").empty());
}

// The published file, with its dropouts set to 0.
TEST(ModelTest, ReadsGpt2AsPublished) {
  const auto shape = ParseHfConfig(R"({
    "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.0, "bos_token_id": 50256,
    "embd_pdrop": 0.0, "eos_token_id": 50256, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "model_type": "gpt2",
    "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_inner": null, "n_layer": 12, "n_positions": 1024, "resid_pdrop": 0,
    "summary_first_dropout": 0.1, "vocab_size": 50257})",
                                   "config.json");
  ASSERT_TRUE(shape.ok()) << shape.status();
  EXPECT_EQ(*shape, *ModelFlavor("gpt2", "124M"));
}

TEST(ModelTest, ReadsLlamaOfBothAges) {
  const char* const common = R"({"model_type": "llama", "attention_bias": false, "hidden_act": "silu", "hidden_size": 4096,
    "intermediate_size": 14336, "max_position_embeddings": 8192, "num_attention_heads": 32, "num_hidden_layers": 32,
    "num_key_value_heads": 8, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "tie_word_embeddings": false, "vocab_size": 128256, )";
  for (const char* rope : {R"("rope_scaling": null, "rope_theta": 500000.0})",
                           R"("rope_parameters": {"rope_theta": 500000.0, "rope_type": "default"}})"}) {
    const auto shape = ParseHfConfig(std::string(common) + rope, "config.json");
    ASSERT_TRUE(shape.ok()) << shape.status();
    EXPECT_EQ(*shape, *ModelFlavor("llama3", "8B"));
  }
}

TEST(ModelTest, LlamaDefaultsAreThoseOfTransformers) {
  const auto shape = ParseHfConfig(R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 100})",
                                   "c");
  ASSERT_TRUE(shape.ok()) << shape.status();
  EXPECT_EQ(shape->vocab_size, 32000);
  EXPECT_EQ(shape->num_kv_heads, 4);
  EXPECT_EQ(shape->head_dim, 16);
  EXPECT_EQ(shape->max_positions, 2048);
  EXPECT_EQ(shape->norm_eps, 1e-6);
  EXPECT_EQ(shape->rope_theta, 10000.0);
  EXPECT_FALSE(shape->tie_embeddings);
}

// Reference: the configuration classes of transformers.
TEST(ModelTest, LeftOutSizesAreThoseOfTransformers) {
  const auto expect = [](const char* type, const ModelShape& shape) {
    const auto read = ParseHfModel(absl::StrCat(R"({"model_type": ")", type, R"("})"), "c", 128);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->shape, shape) << type;
    EXPECT_THAT(read->notes, testing::Contains(testing::HasSubstr(": left out, so it is the default of transformers"))) << type;
  };
  expect("gpt2", *ModelFlavor("gpt2", "124M"));
  ModelShape llama = *ModelFlavor("llama3", "8B");
  llama.vocab_size = 32000, llama.intermediate_size = 11008, llama.max_positions = 2048, llama.rope_theta = 1e4;
  llama.num_kv_heads = 32, llama.norm_eps = 1e-6;
  expect("llama", llama);
  ModelShape mistral = llama;
  mistral.intermediate_size = 14336, mistral.max_positions = 131072, mistral.num_kv_heads = 8;
  mistral.layer_kinds.assign(32, {.window = 4096});
  expect("mistral", mistral);
  ModelShape qwen = llama;
  qwen.family = ModelFamily::kQwen2;
  qwen.vocab_size = 151936, qwen.intermediate_size = 22016, qwen.max_positions = 32768;
  expect("qwen2", qwen);
  qwen.family = ModelFamily::kQwen3;
  expect("qwen3", qwen);
  ModelShape phi = llama;
  phi.family = ModelFamily::kPhi3;
  phi.vocab_size = 32064, phi.hidden_size = 3072, phi.head_dim = 96, phi.intermediate_size = 8192, phi.max_positions = 4096;
  phi.norm_eps = 1e-5;
  expect("phi3", phi);
  ModelShape olmo = llama;
  olmo.family = ModelFamily::kOlmo2;
  olmo.vocab_size = 50304, olmo.norm_eps = 1e-5;
  expect("olmo2", olmo);
  ModelShape gemma = *ModelFlavor("gemma3", "1B");
  gemma.vocab_size = 262208, gemma.hidden_size = 2304, gemma.num_heads = 8, gemma.num_kv_heads = 4,
  gemma.intermediate_size = 9216;
  gemma.max_positions = 131072;
  for (LayerKind& kind : gemma.layer_kinds) kind.window = kind.window == 0 ? 0 : 4096;
  expect("gemma3_text", gemma);
  ModelShape smol = *ModelFlavor("smollm3", "3B");
  smol.max_positions = 32768, smol.rope_theta = 2e6;
  expect("smollm3", smol);
}

TEST(ModelTest, NullHeadsOfKeysAreAsManyAsHeads) {
  for (const char* type : {"llama", "qwen2", "mistral"}) {
    const auto shape = ParseHfConfig(absl::StrCat(R"({"model_type": ")", type, R"(", "hidden_size": 64, "num_hidden_layers": 2,
      "num_attention_heads": 4, "num_key_value_heads": null, "head_dim": null, "intermediate_size": 96})"),
                                     "c", 128);
    ASSERT_TRUE(shape.ok()) << shape.status();
    EXPECT_EQ(shape->num_kv_heads, 4) << type;
    EXPECT_EQ(shape->head_dim, 16) << type;
  }
}

std::string Gpt2With(const std::string& more) {
  return R"({"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4)" + more + "}";
}
std::string LlamaWith(const std::string& more) {
  return R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 96)" +
         more + "}";
}

// What transformers takes for keys that are left out: no window of Qwen 2 unless it is switched on, 4096 tokens of Mistral.
TEST(ModelTest, Qwen2AndMistralWithoutWindowAreTrained) {
  ModelShape qwen = *ModelFlavor("qwen2", "debug");
  const auto read = ParseHfConfig(With("qwen2", R"(, "rope_theta": 1e6, "tie_word_embeddings": true, "attention_bias": true,
    "layer_types": ["full_attention", "full_attention"], "sliding_window": 4096, "use_sliding_window": false)"),
                                  "c");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, qwen);
  qwen.tie_embeddings = false;
  qwen.rope_theta = 10000;
  EXPECT_EQ(*ParseHfConfig(With("qwen2", ""), "c"), qwen);
  const auto mistral = ParseHfConfig(With("mistral", R"(, "sliding_window": null)"), "c");
  ASSERT_TRUE(mistral.ok()) << mistral.status();
  EXPECT_EQ(*mistral, *ParseHfConfig(With("llama", ""), "c"));
}

// As transformers 5.23 reads them: each row was looked up there.
TEST(ModelTest, OfSeveralRotaryKeysOneWins) {
  const RopeScaling scaled = {.factor = 8, .low_freq_factor = 1, .high_freq_factor = 4, .original_max_positions = 64};
  const std::string factors = R"("factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0)";
  const std::string llama3 = R"({"rope_type": "llama3", "original_max_position_embeddings": 64, )" + factors + "}";
  const std::string plain = R"({"rope_type": "default", "rope_theta": 5.0})";
  RopeScaling of_model = scaled, of_default = scaled, beside = scaled;
  of_model.original_max_positions = 512, of_default.original_max_positions = 2048, beside.original_max_positions = 32;
  const std::string without = R"({"rope_type": "llama3", )" + factors + "}";
  const std::tuple<std::string, double, RopeScaling> rows[] = {
      {R"(, "rope_theta": 7.0, "rope_scaling": )" + llama3 + R"(, "rope_parameters": )" + plain, 7, scaled},
      {R"(, "rope_scaling": )" + llama3 + R"(, "rope_parameters": )" + plain, 10000, scaled},
      {R"(, "rope_theta": 7.0, "rope_scaling": null, "rope_parameters": )" + plain, 5, {}},
      {R"(, "rope_theta": 7.0, "rope_scaling": {}, "rope_parameters": )" + plain, 5, {}},
      {R"(, "rope_theta": 7.0, "rope_parameters": )" + llama3, 7, scaled},
      {R"(, "rope_scaling": {"type": "llama3", "original_max_position_embeddings": 64, )" + factors + "}", 10000, scaled},
      {R"(, "rope_scaling": {"type": "llama3", "rope_type": "default", "original_max_position_embeddings": 64})", 10000, {}},
      {R"(, "max_position_embeddings": 512, "rope_scaling": )" + without, 10000, of_model},
      {R"(, "rope_scaling": )" + without, 10000, of_default},
      {R"(, "original_max_position_embeddings": 32, "rope_scaling": )" + llama3, 10000, beside},
      {R"(, "rope_scaling": )" + llama3 + R"(, "rope_parameters": {"rope_type": "yarn", "factor": 4.0})", 10000, scaled},
      {R"(, "rope_scaling": )" + plain + R"(, "rope_parameters": )" + llama3, 5, {}},
  };
  for (const auto& [keys, theta, scaling] : rows) {
    const auto shape = ParseHfConfig(LlamaWith(keys), "c");
    ASSERT_TRUE(shape.ok()) << keys << shape.status();
    EXPECT_EQ(shape->rope_theta, theta) << keys;
    EXPECT_EQ(shape->rope_scaling, scaling) << keys;
  }
}

TEST(ModelTest, Qwen3AndPhi4AreRead) {
  const auto qwen = ParseHfConfig(With("qwen3", R"(, "head_dim": 24, "rope_theta": 1e6, "tie_word_embeddings": true,
    "sliding_window": null, "use_sliding_window": false, "max_window_layers": 2)"),
                                  "c");
  ASSERT_TRUE(qwen.ok()) << qwen.status();
  EXPECT_EQ(*qwen, *ModelFlavor("qwen3", "debug"));
  EXPECT_EQ(ParseHfConfig(With("qwen3", ""), "c")->head_dim, 128) << "not the hidden size by the heads";
  const auto phi = ParseHfConfig(With("phi3", R"(, "rope_theta": 250000.0, "rope_scaling": null, "sliding_window": null,
    "original_max_position_embeddings": 256, "embd_pdrop": 0.0)"),
                                 "c");
  ASSERT_TRUE(phi.ok()) << phi.status();
  EXPECT_EQ(*phi, *ModelFlavor("phi4", "debug"));
}

// 1 in no_rope_layers is a layer with positions. Left out, every fourth has none.
TEST(ModelTest, SmolLm3ChoosesLayersWithoutPositions) {
  const auto kinds = [](const std::string& more) {
    const auto shape = ParseHfConfig(With("smollm3", more), "c");
    EXPECT_TRUE(shape.ok()) << shape.status();
    return shape.ok() ? shape->layer_kinds : std::vector<LayerKind>(9);
  };
  const LayerKind with, none = {.rotary = false};
  EXPECT_EQ(kinds(R"(, "no_rope_layers": [1, 0])"), (std::vector<LayerKind>{with, none}));
  EXPECT_EQ(kinds(R"(, "no_rope_layers": [0, 0])"), (std::vector<LayerKind>{none, none}));
  EXPECT_TRUE(kinds(R"(, "no_rope_layers": [1, 1])").empty()) << "all alike";
  EXPECT_TRUE(kinds("").empty()) << "of two layers none is a fourth";
  EXPECT_EQ(kinds(R"(, "no_rope_layer_interval": 2)"), (std::vector<LayerKind>{with, none}));
  EXPECT_EQ(kinds(R"(, "no_rope_layers": null, "no_rope_layer_interval": 2)"), (std::vector<LayerKind>{with, none}));
  EXPECT_TRUE(kinds(R"(, "use_sliding_window": true)").empty()) << "of no size";
  const auto shape = ParseHfConfig(With("smollm3", ""), "c");
  EXPECT_EQ(shape->rope_theta, 2e6);
  EXPECT_TRUE(shape->tie_embeddings);
  EXPECT_TRUE(ModelShape().KindOf(7).rotary);
  EXPECT_FALSE(ModelFlavor("smollm3", "3B")->KindOf(3).rotary);
  EXPECT_TRUE(ModelFlavor("smollm3", "3B")->KindOf(4).rotary);
}

TEST(ModelTest, WhatIsNotSupportedIsRefusedByKey) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "my.json: is not JSON: it is empty; download it again"},
      {" \n", "it is empty"},
      {"<!DOCTYPE html><html>Entry not found</html>", "it is a web page and no JSON; download the file itself"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 123\n",
       "it is a Git LFS pointer, without the file's contents: git lfs pull"},
      {R"({"model_type": "mistral3", "text_config": {"model_type": "mistral", "hidden_size": 8}, "vision_config": {}})",
       "my.json: model_type is 'mistral3': it holds a language model of type 'mistral' in text_config beside other parts; save "
       "that alone: jq .text_config FILE > config.json"},
      {R"({"model_type": "llava", "text_config": {"model_type": "vicuna"}})",
       "it holds a language model of type 'vicuna' in text_config, which is not among \"gpt2\""},
      {R"({"dim": 4096, "n_layers": 32})", "model_type is missing: it is the params.json of another program"},
      {R"({"metadata": {}, "weight_map": {}})", "it is the index of a model's files of weights; give the config.json"},
      {"{\"model_type\": ", "my.json: is not JSON"},
      {"[1]", "my.json: must be a JSON object"},
      {"{}",
       "my.json: model_type is missing; it must be \"gpt2\", \"llama\", \"qwen2\", \"mistral\", \"phi3\", \"qwen3\", "
       "\"smollm3\", \"olmo2\" or \"gemma3_text\""},
      {R"({"model_type": "bloom"})",
       "model_type must be \"gpt2\", \"llama\", \"qwen2\", \"mistral\", \"phi3\", \"qwen3\", \"smollm3\", \"olmo2\" or "
       "\"gemma3_text\", got "
       "\"bloom\""},
      {R"({"model_type": "mixtral"})",
       "model_type \"mixtral\": it is a mixture of experts, which is not supported; use a dense model"},
      {R"({"model_type": "qwen2_moe"})", "it is a mixture of experts"},
      {R"({"model_type": "deepseek_v3"})", "it is a mixture of experts"},
      {LlamaWith(R"(, "num_experts": 8)"), "my.json: num_experts 8: mixture of experts is not supported"},
      {LlamaWith(R"(, "n_routed_experts": 64)"), "n_routed_experts 64: mixture of experts is not supported"},
      {LlamaWith(R"(, "context_parallel_size": 2)"), "context_parallel_size 2: context parallelism is not supported"},
      {LlamaWith(R"(, "sliding_window": 4096)"), "sliding_window 4096: attention over a window of the newest tokens"},
      {Gpt2With(R"(, "activation_function": "relu")"), "activation_function \"relu\" is not supported; use \"gelu_new\""},
      {Gpt2With(R"(, "scale_attn_weights": false)"), "scale_attn_weights false is not supported; use true"},
      {Gpt2With(R"(, "scale_attn_by_inverse_layer_idx": true)"), "scale_attn_by_inverse_layer_idx true"},
      {Gpt2With(R"(, "n_inner": 0)"), "n_inner must be at least 1, got 0"},
      {Gpt2With(R"(, "n_positions": "many")"), "n_positions must be an integer, got \"many\""},
      {Gpt2With(R"(, "n_positions": 1.5)"), "n_positions must be an integer, got 1.5"},
      {Gpt2With(R"(, "n_positions": 18446744073709551615)"), "n_positions must be at most"},
      {Gpt2With(R"(, "vocab_size": -3)"), "vocab_size must be at least 1, got -3"},
      {Gpt2With(R"(, "layer_norm_epsilon": 0)"), "layer_norm_epsilon must be a number above 0"},
      {Gpt2With(R"(, "tie_word_embeddings": 1)"), "tie_word_embeddings must be true or false, got 1"},
      {R"({"model_type": "gpt2", "n_embd": 65, "n_layer": 2, "n_head": 4})", "n_embd must be a multiple of n_head 4, got 65"},
      {LlamaWith(R"(, "num_local_experts": 8)"), "num_local_experts 8: mixture of experts is not supported; use a dense model"},
      {LlamaWith(R"(, "attention_bias": true)"), "attention_bias true is not supported; use false"},
      {LlamaWith(R"(, "mlp_bias": true)"), "mlp_bias true"},
      {LlamaWith(R"(, "hidden_act": "gelu")"), "hidden_act \"gelu\" is not supported; use \"silu\""},
      {LlamaWith(R"(, "rope_scaling": {"rope_type": "llama3", "factor": 8.0})"), "rope_scaling: low_freq_factor is missing"},
      {LlamaWith(R"(, "rope_scaling": {"rope_type": "llama3", "factor": 0.5, "low_freq_factor": 4, "high_freq_factor": 4})"),
       "rope_scaling: factor must be at least 1, got 0.5\nmy.json: rope_scaling: high_freq_factor must be above low_freq_factor "
       "4, "
       "got 4"},
      {LlamaWith(R"(, "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 1024})"),
       "my.json: rope_scaling has factor, low_freq_factor, original_max_position_embeddings and no rope_type; add the rope_type"},
      {LlamaWith(R"(, "rope_parameters": {"rope_type": null, "rope_theta": 1e4, "factor": 2})"),
       "rope_parameters has factor and no rope_type"},
      {LlamaWith(R"(, "rope_scaling": {"type": "default", "factor": 4.0})"),
       "rope_scaling with rope_type \"default\" and factor 4.0 says both"},
      {LlamaWith(R"(, "rope_parameters": {"rope_type": "yarn"})"), "rope_parameters with rope_type \"yarn\" is not supported"},
      {LlamaWith(R"(, "rope_parameters": {"rope_type": "longrope", "short_factor": [1], "long_factor": [1]})"),
       "rope_parameters with rope_type \"longrope\" is not supported"},
      {LlamaWith(R"(, "rope_scaling": {"rope_type": "yarn", "factor": 4}, "rope_parameters": {"rope_type": "default"})"),
       "rope_scaling with rope_type \"yarn\" is not supported"},
      {LlamaWith(R"(, "attn_logit_softcapping": 50.0)"), "attn_logit_softcapping 50.0 is not supported; remove it"},
      {LlamaWith(R"(, "final_logit_softcapping": 30.0)"), "final_logit_softcapping 30.0 is not supported; remove it"},
      {LlamaWith(R"(, "rope_parameters": 5)"), "rope_parameters must be an object"},
      {LlamaWith(R"(, "rope_parameters": {"rope_theta": -1})"), "rope_parameters: rope_theta must be a number above 0"},
      {LlamaWith(R"(, "num_key_value_heads": 3)"), "num_key_value_heads must divide num_attention_heads 4, got 3"},
      {LlamaWith(R"(, "head_dim": 15)"), "head_dim must be even for rotary positions, got 15"},
      {R"({"model_type": "llama", "hidden_size": 65, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96})",
       "hidden_size must be a multiple of num_attention_heads 4, got 65"},
      {With("mistral", R"(, "sliding_window": 64, "layer_types": ["sliding_attention", "full_attention"])"),
       "layer_types with \"full_attention\", which transformers does not read of this type: every layer has the window there"},
      {With("qwen2", R"(, "use_sliding_window": true, "layer_types": ["sliding_attention"])"),
       "layer_types must have one for each of the 2 layers, got 1"},
      {With("qwen2", R"(, "use_sliding_window": true, "layer_types": "full_attention")"), "layer_types must be an array"},
      {With("qwen3", R"(, "use_sliding_window": true, "layer_types": ["full_attention", "chunked_attention"])"),
       "layer_types with \"chunked_attention\": the engine has attention over all earlier tokens"},
      {With("qwen2", R"(, "layer_types": ["full_attention", "sliding_attention"])"), "layer_types with \"sliding_attention\""},
      {With("qwen2", R"(, "rope_scaling": {"type": "yarn", "factor": 4.0})"), "rope_scaling with type \"yarn\""},
      {With("qwen2", R"(, "mlp_bias": true)"), "mlp_bias true is not supported; use false"},
      {With("qwen3", R"(, "attention_bias": true)"), "attention_bias true is not supported; use false"},
      {With("phi3", R"(, "partial_rotary_factor": 0.75)"), "partial_rotary_factor 0.75 is not supported; use 1.0"},
      {With("phi3", R"(, "rope_scaling": {"type": "longrope", "short_factor": [1], "long_factor": [1]})"),
       "rope_scaling with type \"longrope\" is not supported"},
      {With("olmo2", R"(, "sliding_window": 64)"), "sliding_window 64: attention over a window"},
      {With("smollm3", R"(, "no_rope_layers": [1])"),
       "no_rope_layers must have 1 or 0 (without rotary positions) for each of the 2 layers"},
      {With("smollm3", R"(, "no_rope_layers": [1, 2])"), "no_rope_layers must have 1 or 0"},
      {With("smollm3", R"(, "no_rope_layers": 4)"), "no_rope_layers must have 1 or 0"},
      {With("smollm3", R"(, "no_rope_layer_interval": 0)"), "no_rope_layer_interval must be at least 1, got 0"},
      {With("gemma3_text", R"(, "sliding_window": null)"), "sliding_window must be a number of tokens, got null"},
      {With("gemma3_text", R"(, "hidden_activation": "silu")"),
       "hidden_activation \"silu\" is not supported; use \"gelu_pytorch_tanh\""},
      {With("gemma3_text", R"(, "use_bidirectional_attention": true)"), "use_bidirectional_attention true is not supported"},
      {With("gemma3_text", R"(, "final_logit_softcapping": 30.0)"), "final_logit_softcapping 30.0 is not supported"},
      {With("gemma3_text", R"(, "rope_scaling": {"rope_type": "linear", "factor": 8.0})"),
       "rope_scaling with rope_type \"linear\" is not supported"},
      {With("gemma3_text", R"(, "rope_parameters": {"rope_type": "default", "rope_theta": 5.0})"),
       "rope_parameters must have an object for full_attention and one for sliding_attention, not rope_theta"},
      {With("gemma3_text", R"(, "rope_parameters": {"sliding_attention": {"rope_type": "llama3", "factor": 8.0,
        "low_freq_factor": 1.0, "high_freq_factor": 4.0}})"),
       "rope_parameters: sliding_attention is scaled, which the engine does for layers without a window alone"},
      {R"({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text"}, "vision_config": {}})",
       "model_type \"gemma3\": Gemma 3 from 4B on reads images, too"},
      {LlamaWith(R"(, "quantization_config": {"bits": 4})"), "quantization_config"},
  };
  for (const auto& [text, message] : cases) {
    const absl::Status status = ParseHfConfig(text, "my.json").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message)) << text;
  }
}

}  // namespace
}  // namespace motley
