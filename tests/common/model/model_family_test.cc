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

}  // namespace
}  // namespace motley
