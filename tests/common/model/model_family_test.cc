#include "common/model/model_family.h"

#include <gtest/gtest.h>

#include <iterator>
#include <set>

#include "common/model/model.h"
#include "nlohmann/json.hpp"

namespace motley {
namespace {

// Their numbers are part of stored profiles' digests.
TEST(ModelFamilyTest, FamiliesKeepTheirNumbers) {
  EXPECT_EQ(static_cast<int>(ModelFamily::kGpt2), 0);
  EXPECT_EQ(static_cast<int>(ModelFamily::kLlama), 1);
  EXPECT_EQ(static_cast<int>(ModelFamily::kQwen2), 2);
  EXPECT_EQ(static_cast<int>(ModelFamily::kPhi3), 3);
  EXPECT_EQ(static_cast<int>(ModelFamily::kQwen3), 4);
  EXPECT_EQ(static_cast<int>(ModelFamily::kSmolLm3), 5);
  EXPECT_EQ(static_cast<int>(ModelFamily::kOlmo2), 6);
  EXPECT_EQ(static_cast<int>(ModelFamily::kGemma3), 7);
}

// A family that the config's reader does not know, or whose flavors are missing, could never be trained.
TEST(ModelFamilyTest, EveryFamilyIsReadAsWritten) {
  std::set<std::string_view> types;
  for (const ModelFamily family : kModelFamilies) {
    ModelShape shape = *ModelFlavor("gpt2", "debug");
    shape.family = family;
    const std::string text = ToHfConfig(shape);
    const auto read = ParseHfConfig(text, "config.json");
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, shape);
    const nlohmann::json config = nlohmann::json::parse(text);
    EXPECT_EQ(config.at("model_type"), TraitsOf(family).model_type);
    EXPECT_EQ(config.at("architectures").size(), 1u);
    types.insert(TraitsOf(family).model_type);
  }
  EXPECT_EQ(types.size(), std::size(kModelFamilies));
}

TEST(ModelFamilyTest, Qwen2DiffersFromLlamaInItsBiasesAlone) {
  const FamilyTraits &llama = TraitsOf(ModelFamily::kLlama), &qwen = TraitsOf(ModelFamily::kQwen2);
  EXPECT_TRUE(SameLayers(llama, qwen));
  EXPECT_FALSE(SameLayers(TraitsOf(ModelFamily::kGpt2), qwen));
  EXPECT_TRUE(qwen.biases.qkv && !qwen.biases.norm && !qwen.biases.out && !qwen.biases.mlp);
  EXPECT_FALSE(llama.biases.qkv || llama.biases.norm || llama.biases.out || llama.biases.mlp);
  EXPECT_EQ(qwen.weights, llama.weights);
}

TEST(ModelFamilyTest, Phi3AndSmolLm3HaveLlamasLayersAndQwen3HasNormsOfHeads) {
  const FamilyTraits& llama = TraitsOf(ModelFamily::kLlama);
  for (const ModelFamily family : {ModelFamily::kPhi3, ModelFamily::kSmolLm3, ModelFamily::kQwen3}) {
    const FamilyTraits& traits = TraitsOf(family);
    EXPECT_EQ(SameLayers(llama, traits), family != ModelFamily::kQwen3) << traits.model_type;
    EXPECT_FALSE(traits.biases.qkv || traits.biases.norm || traits.biases.out || traits.biases.mlp) << traits.model_type;
  }
  EXPECT_EQ(TraitsOf(ModelFamily::kPhi3).names.up.size(), 1u);
  EXPECT_EQ(TraitsOf(ModelFamily::kQwen3).head_norm, HeadNorm::kByHead);
  EXPECT_EQ(TraitsOf(ModelFamily::kSmolLm3).rotary_layers, RotaryLayers::kChosen);
}

TEST(ModelFamilyTest, Olmo2HasNormsBehindAndOverAllHeads) {
  const FamilyTraits& olmo = TraitsOf(ModelFamily::kOlmo2);
  EXPECT_EQ(olmo.norm_places, NormPlaces::kBehind);
  EXPECT_EQ(olmo.head_norm, HeadNorm::kWhole);
  EXPECT_EQ(olmo.names.norm1, TraitsOf(ModelFamily::kLlama).names.norm2) << "one name, two places";
  EXPECT_FALSE(SameLayers(olmo, TraitsOf(ModelFamily::kLlama)) || SameLayers(olmo, TraitsOf(ModelFamily::kQwen3)));
  for (const ModelFamily family : kModelFamilies) {
    const bool behind = family == ModelFamily::kOlmo2 || family == ModelFamily::kGemma3;
    EXPECT_EQ(IsDivisible(TraitsOf(family)), !behind);
  }
}

TEST(ModelFamilyTest, Gemma3HasNormsBeforeAndBehind) {
  const FamilyTraits &gemma = TraitsOf(ModelFamily::kGemma3), &llama = TraitsOf(ModelFamily::kLlama);
  EXPECT_EQ(gemma.norm_places, NormPlaces::kBoth);
  EXPECT_EQ(gemma.norm, NormKind::kRmsNormPlusOne);
  EXPECT_EQ(gemma.names.behind1, llama.names.norm2) << "one name, two places";
  EXPECT_NE(gemma.names.norm2, llama.names.norm2);
  for (const ModelFamily family : kModelFamilies) {
    EXPECT_EQ(SameLayers(gemma, TraitsOf(family)), family == ModelFamily::kGemma3);
    EXPECT_EQ(TraitsOf(family).scales_embedding, family == ModelFamily::kGemma3);
  }
}

}  // namespace
}  // namespace motley
