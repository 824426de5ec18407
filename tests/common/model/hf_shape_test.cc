// What planning takes of a HuggingFace config, and what training says of the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/model/model.h"
#include "common/model/parameters.h"
#include "tests/common/model/published_configs.h"

namespace motley {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string Refusal(const std::string& text) { return std::string(ParseHfConfig(text, "c.json").status().message()); }
std::string ShapeRefusal(const std::string& text) { return std::string(ParseHfShape(text, "c.json").status().message()); }
std::vector<std::string> Notes(const std::string& text) {
  const auto model = ParseHfShape(text, "c.json");
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? model->notes : std::vector<std::string>{};
}
std::string LlamaShapeWith(const std::string& more) {
  return R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 96, )" +
         more + "}";
}

TEST(HfShapeTest, PublishedConfigsHaveThePublishedParameters) {
  for (const PublishedConfig& config : kPublishedConfigs) {
    const auto model = ParseHfShape(config.text, config.name);
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_NEAR(static_cast<double>(NumParameters(model->shape)), config.parameters, 0.01 * config.parameters) << config.name;
    // Without dropout OpenAI's is trained all the same, and windows at the price of all earlier tokens.
    const bool trained = model->notes.empty() || config.text == kGpt2Config || config.text == kMistralConfig ||
                         config.text == kPhi3Config || config.text == kGemma3Config;
    EXPECT_EQ(trained, ParseHfConfig(config.text, config.name).ok()) << config.name;
    // The shape is one that the engine trains, whatever the model is.
    EXPECT_EQ(*ParseHfConfig(ToHfConfig(model->shape), "again"), model->shape) << config.name;
  }
}

TEST(HfShapeTest, PublishedConfigsAreTheNamedShapes) {
  EXPECT_EQ(ParseHfShape(kGpt2Config, "c")->shape, *ModelFlavor("gpt2", "124M"));
  ModelShape llama = ParseHfShape(kLlama32Config, "c")->shape;
  EXPECT_EQ(std::exchange(llama.rope_scaling, RopeScaling()), (RopeScaling{32, 1, 4, 8192}));
  EXPECT_EQ(llama, *ModelFlavor("llama3", "1B"));
  EXPECT_EQ(*ParseHfConfig(kQwen25Config, "c"), *ModelFlavor("qwen2", "7B"));
  EXPECT_EQ(*ParseHfConfig(kQwen3Config, "c"), *ModelFlavor("qwen3", "8B"));
  EXPECT_EQ(*ParseHfConfig(kPhi4Config, "c"), *ModelFlavor("phi4", "14B"));
  EXPECT_EQ(*ParseHfConfig(kSmolLm3Config, "c"), *ModelFlavor("smollm3", "3B"));
  EXPECT_EQ(*ParseHfConfig(kOlmo2Config, "c"), *ModelFlavor("olmo2", "7B"));
  EXPECT_EQ(*ParseHfConfig(kGemma3Config, "c"), *ModelFlavor("gemma3", "270M"));
  const ModelShape gemma = ParseHfShape(kGemma2Config, "c")->shape;
  EXPECT_EQ(gemma.head_dim, 256);
  EXPECT_TRUE(gemma.tie_embeddings) << "where the key is left out";
}

TEST(HfShapeTest, NotesSayWhatThePriceLeavesOut) {
  EXPECT_THAT(
      Notes(kGpt2Config),
      ElementsAre("c.json: resid_pdrop 0.1, embd_pdrop 0.1, attn_pdrop 0.1: priced as without dropout: no product depends "
                  "on it, and masks, a byte an element at most, are not counted; Motley trains without dropout"));
  EXPECT_TRUE(Notes(kLlama31Config).empty());
  EXPECT_TRUE(Notes(kQwen25Config).empty()) << "use_sliding_window is false";
  EXPECT_THAT(
      Notes(kMistralConfig),
      ElementsAre("c.json: sliding_window 4096: attention is priced over all earlier tokens, too much where sequences are "
                  "longer than the window"));
  EXPECT_THAT(Notes(kPhi3Config), ElementsAre(HasSubstr("sliding_window 2047")));
  EXPECT_THAT(Notes(kGemma2Config),
              ElementsAre(HasSubstr("two more norms keep 10 % more bytes of a layer's activations than counted"),
                          HasSubstr("hidden_activation \"gelu_pytorch_tanh\", attn_logit_softcapping 50.0, "
                                    "final_logit_softcapping 30.0: priced as without"),
                          HasSubstr("sliding_window 4096")));
}

TEST(HfShapeTest, WithoutNotesBothReadTheSame) {
  for (const char* name : {"gpt2", "llama3", "qwen2", "qwen3", "phi4", "smollm3", "olmo2"}) {
    const std::string text = ToHfConfig(*ModelFlavor(name, "debug"));
    EXPECT_TRUE(Notes(text).empty());
    EXPECT_EQ(ParseHfShape(text, "c")->shape, *ParseHfConfig(text, "c"));
  }
}

TEST(HfShapeTest, WhatTrainingRefusesIsANoteOfPlanning) {
  for (const auto& [more, refusal, note] :
       {std::tuple{R"("attention_bias": true)", "attention_bias true is not supported; use false", "attention_bias true: priced"},
        std::tuple{R"("mlp_bias": true)", "mlp_bias true is not supported; use false", "elements are not counted"},
        std::tuple{R"("hidden_act": "gelu")", "hidden_act \"gelu\" is not supported; use \"silu\"",
                   "hidden_act \"gelu\": priced"},
        std::tuple{R"("attn_logit_softcapping": 50)", "attn_logit_softcapping 50 is not supported; remove it", "no product"},
        std::tuple{R"("query_pre_attn_scalar": 100)", "query_pre_attn_scalar 100 is not supported; use 16", "no product"},
        std::tuple{R"("partial_rotary_factor": 0.75)", "partial_rotary_factor 0.75 is not supported; use 1.0", "no product"},
        std::tuple{R"("rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5})",
                   "rope_parameters: partial_rotary_factor 0.5 is not supported", "no product"},
        std::tuple{R"("rope_scaling": {"type": "su", "rope_type": "longrope"})",
                   "rope_scaling with rope_type \"longrope\" is not supported", "no product"},
        std::tuple{R"("quantization_config": {"bits": 4})", "quantization_config {\"bits\":4} is not supported; remove it",
                   "parameters are priced in the precision of the training"}}) {
    EXPECT_THAT(Refusal(LlamaShapeWith(more)), HasSubstr(refusal));
    EXPECT_THAT(Refusal(LlamaShapeWith(more)), Not(HasSubstr("\n"))) << "said once";
    EXPECT_THAT(Notes(LlamaShapeWith(more)), ElementsAre(AllOf(HasSubstr(note), HasSubstr("does not train it yet"))));
  }
}

TEST(HfShapeTest, TrainingSaysAllReasonsAtOnceTheTypeFirst) {
  EXPECT_EQ(Refusal(LlamaShapeWith(R"("mlp_bias": true, "hidden_act": "gelu")")),
            "c.json: hidden_act \"gelu\" is not supported; use \"silu\"\nc.json: mlp_bias true is not supported; use false");
  // Of another family nothing helps, so nothing else is said.
  EXPECT_EQ(Refusal(kGemma2Config),
            "c.json: model_type \"gemma2\" can be planned but not trained: it has norms behind attention and MLP, scaled "
            "embeddings and capped logits; the engine trains \"gpt2\", \"llama\", \"qwen2\", \"mistral\", \"phi3\", \"qwen3\", "
            "\"smollm3\", \"olmo2\" and \"gemma3_text\"");
}

TEST(HfShapeTest, AllProblemsAreSaidAtOnce) {
  EXPECT_EQ(Refusal(R"({"model_type": "llama", "num_experts": 8, "hidden_size": "wide", "mlp_bias": true,
                        "num_hidden_layers": 0, "num_key_value_heads": -2})"),
            "c.json: num_experts 8: mixture of experts is not supported; use a dense model\n"
            "c.json: mlp_bias true is not supported; use false\n"
            "c.json: hidden_size must be an integer, got \"wide\"\n"
            "c.json: num_hidden_layers must be at least 1, got 0\n"
            "c.json: num_key_value_heads must be at least 1, got -2");
  EXPECT_EQ(Refusal(R"({"model_type": "gpt2", "n_layer": 0, "n_head": "few"})"),
            "c.json: n_layer must be at least 1, got 0\nc.json: n_head must be an integer, got \"few\"");
}

TEST(HfShapeTest, AnUnknownTypeIsAllThatIsSaid) {
  const std::string foreign = R"(, "sliding_window": 4096, "num_experts": 8, "hidden_act": "relu"})";
  EXPECT_EQ(Refusal(R"({"model_type": "bloom")" + foreign),
            "c.json: model_type must be \"gpt2\", \"llama\", \"qwen2\", \"mistral\", \"phi3\", \"qwen3\", \"smollm3\", "
            "\"olmo2\" or \"gemma3_text\", got "
            "\"bloom\"");
  EXPECT_EQ(
      ShapeRefusal(R"({"model_type": "bloom")" + foreign),
      "c.json: model_type must be \"gpt2\", \"llama\", \"qwen2\", \"mistral\", \"phi3\", \"qwen3\", \"smollm3\", \"olmo2\", "
      "\"gemma3_text\" or \"gemma2\", got \"bloom\"");
  EXPECT_EQ(Refusal(R"({"hidden_size": 64)" + foreign),
            "c.json: model_type is missing; it must be \"gpt2\", \"llama\", \"qwen2\", \"mistral\", \"phi3\", \"qwen3\", "
            "\"smollm3\", \"olmo2\" or \"gemma3_text\"");
  EXPECT_THAT(ShapeRefusal("{}"), HasSubstr("model_type is missing; it must be \"gpt2\", \"llama\", \"qwen2\""));
  EXPECT_THAT(ShapeRefusal(R"({"model_type": 5})"), HasSubstr("got 5"));
}

TEST(HfShapeTest, FamiliesThatPeopleAskForAreRefusedByWhatTheyAre) {
  for (const auto& [type, why] :
       {std::pair{"gpt_oss", "it is a mixture of experts, which is not supported; use a dense model"},
        std::pair{"mixtral", "it is a mixture of experts"}, std::pair{"qwen3_moe", "it is a mixture of experts"},
        std::pair{"gemma3",
                  "Gemma 3 from 4B on reads images, too, and its positions are scaled; those of text alone are gemma3_text; it "
                  "must be \"gpt2\", \"llama\", \"qwen2\""},
        std::pair{"bert", "BERT is an encoder"}, std::pair{"mamba", "no transformer"}}) {
    const std::string text = absl::StrCat(R"({"model_type": ")", type, R"(", "num_local_experts": 32, "sliding_window": 128})");
    for (const std::string& refusal : {Refusal(text), ShapeRefusal(text)}) {
      EXPECT_THAT(refusal, AllOf(StartsWith(absl::StrCat("c.json: model_type \"", type, "\": ")), HasSubstr(why)));
      EXPECT_THAT(refusal, Not(HasSubstr("\n")));
    }
  }
}

// Of a type of which transformers reads no window. What no token notices is no difference.
TEST(HfShapeTest, AForeignWindowIsTakenWhereItHoldsTheSequence) {
  const std::string text = LlamaShapeWith(R"("sliding_window": 4096)");
  const auto llama = ParseHfConfig(text, "c", 4096);
  ASSERT_TRUE(llama.ok()) << llama.status();
  EXPECT_EQ(*llama, ParseHfShape(text, "c")->shape);
  EXPECT_TRUE(llama->layer_kinds.empty());
  const absl::Status longer = ParseHfConfig(text, "c", 4097).status();
  EXPECT_THAT(std::string(longer.message()), HasSubstr("set training.seq_len to at most 4096"));
  EXPECT_EQ(longer.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(ParseHfConfig(text, "c", 0).ok()) << "of a length that nobody said";
  const std::string layers = R"("layer_types": ["sliding_attention", "full_attention"])";
  const std::string sized = LlamaShapeWith(layers + R"(, "sliding_window": 64)");
  EXPECT_TRUE(ParseHfConfig(sized, "c", 64).ok());
  EXPECT_FALSE(ParseHfConfig(sized, "c", 65).ok());
  EXPECT_FALSE(ParseHfConfig(LlamaShapeWith(layers), "c", 64).ok()) << "nobody says how large the window is";
  EXPECT_FALSE(ParseHfConfig(LlamaShapeWith(R"("layer_types": ["chunked_attention"], "sliding_window": 64)"), "c", 64).ok());
}

TEST(HfShapeTest, DropoutIsNotedAndNotTrained) {
  const auto gpt2 = ParseHfModel(kGpt2Config, "c.json", 128);
  ASSERT_TRUE(gpt2.ok()) << gpt2.status();
  EXPECT_EQ(gpt2->shape, *ModelFlavor("gpt2", "124M"));
  EXPECT_THAT(gpt2->notes, ElementsAre("c.json: resid_pdrop 0.1: Motley trains without dropout",
                                       "c.json: embd_pdrop 0.1: Motley trains without dropout",
                                       "c.json: attn_pdrop 0.1: Motley trains without dropout"));
  EXPECT_TRUE(ParseHfModel(kQwen25Config, "c.json", 128)->notes.empty());
  for (const char* wrong : {"1", "-0.1", "true", "\"some\""}) {
    const std::string text = LlamaShapeWith(absl::StrCat(R"("attention_dropout": )", wrong));
    EXPECT_THAT(Refusal(text), HasSubstr("attention_dropout must be a number from 0 to less than 1, got ")) << wrong;
    EXPECT_FALSE(ParseHfShape(text, "c").ok()) << wrong;
  }
}

TEST(HfShapeTest, PlanningRefusesWhatHasNoShape) {
  const std::pair<std::string, const char*> cases[] = {
      {"[1]", "c.json: must be a JSON object"},
      {"{", "c.json: is not JSON"},
      {R"({"model_type": "mixtral", "num_local_experts": 8})", "model_type \"mixtral\": it is a mixture of experts"},
      {LlamaShapeWith(R"("num_experts": 8)"), "num_experts 8: mixture of experts"},
      {LlamaShapeWith(R"("cp_size": 2)"), "cp_size 2: context parallelism"},
      {LlamaShapeWith(R"("rope_scaling": 5)"), "rope_scaling must be an object"},
      {LlamaShapeWith(R"("sliding_window": "some")"), "sliding_window must be an integer"},
      {LlamaShapeWith(R"("use_sliding_window": 1)"), "use_sliding_window must be true or false"},
      {R"({"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4, "add_cross_attention": true})",
       "add_cross_attention true: cross-attention is not supported"},
      {R"({"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4, "add_cross_attention": 1})",
       "add_cross_attention must be true or false"},
      {R"({"model_type": "qwen2", "hidden_size": 64, "num_attention_heads": 4})",
       "num_key_value_heads is left out, which means 32 for this type and does not divide num_attention_heads 4; add it"},
      {LlamaShapeWith(R"("rope_scaling": {"factor": 8.0})"), "rope_scaling has factor and no rope_type"},
  };
  for (const auto& [text, message] : cases) {
    const absl::Status status = ParseHfShape(text, "c.json").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message)) << text;
  }
}

TEST(HfShapeTest, LeftOutSizesAreOneNote) {
  EXPECT_THAT(Notes(R"({"model_type": "gpt2", "n_layer": 2})"),
              ElementsAre("c.json: n_embd 768, n_head 12: left out, so it is the default of transformers"));
  const auto gemma = ParseHfShape(R"({"model_type": "gemma2"})", "c");
  ASSERT_TRUE(gemma.ok()) << gemma.status();
  EXPECT_EQ(gemma->shape.head_dim, 256);
  EXPECT_EQ(gemma->shape.num_layers, 26);
  EXPECT_EQ(gemma->shape.intermediate_size, 9216);
}

TEST(HfShapeTest, WindowsCountWhereTheyAreUsed) {
  std::string qwen = kQwen25Config;
  const std::string off = R"("use_sliding_window": false)";
  qwen.replace(qwen.find(off), off.size(), R"("use_sliding_window": true)");
  EXPECT_TRUE(Notes(qwen).empty()) << "of the layers from max_window_layers on, which is none of its 28";
  const std::string from = R"("max_window_layers": 28)";
  qwen.replace(qwen.find(from), from.size(), R"("max_window_layers": 27)");
  EXPECT_THAT(absl::StrJoin(Notes(qwen), "\n"), HasSubstr("sliding_window 131072"));
  EXPECT_TRUE(Notes(LlamaShapeWith(R"("sliding_window": null)")).empty());
  EXPECT_TRUE(Notes(LlamaShapeWith(absl::StrCat(off, R"(, "sliding_window": 16)"))).empty());
}

}  // namespace
}  // namespace motley
