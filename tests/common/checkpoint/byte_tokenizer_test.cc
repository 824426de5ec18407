#include "common/checkpoint/byte_tokenizer.h"

#include <gtest/gtest.h>

#include <set>

#include "nlohmann/json.hpp"

namespace motley {
namespace {

using Json = nlohmann::json;

TEST(ByteTokenizerTest, EveryByteIsItsOwnId) {
  const Json model = Json::parse(ByteTokenizer()).at("model");
  std::set<int> ids;
  for (const auto& [character, id] : model.at("vocab").items()) ids.insert(id.get<int>());
  EXPECT_EQ(ids.size(), 256u);
  EXPECT_EQ(*ids.begin(), 0);
  EXPECT_EQ(*ids.rbegin(), 255);
  EXPECT_EQ(model.at("vocab").size(), 256u);
  EXPECT_TRUE(model.at("merges").empty());
}

// Reference: bytes_to_unicode of openai/gpt-2, src/encoder.py, by hand at the ends of its ranges.
TEST(ByteTokenizerTest, BytesAreWrittenAsGpt2Does) {
  const Json vocabulary = Json::parse(ByteTokenizer()).at("model").at("vocab");
  const std::vector<std::pair<std::string, int>> expected = {
      {"A", 65},          {"!", 33},         {"~", 126},        {"\xC2\xA1", 0xA1}, {"\xC2\xAC", 0xAC},
      {"\xC2\xAE", 0xAE}, {"\xC3\xBF", 255}, {"\xC4\x80", 0},   {"\xC4\x8A", 10},   {"\xC4\xA0", 32},
      {"\xC4\xA1", 127},  {"\xC4\xA2", 128}, {"\xC5\x82", 160}, {"\xC5\x83", 0xAD}};
  for (const auto& [character, byte] : expected) EXPECT_EQ(vocabulary.value(character, -1), byte) << character;
}

TEST(ByteTokenizerTest, NothingIsAddedOrLeftOut) {
  const Json tokenizer = Json::parse(ByteTokenizer());
  EXPECT_TRUE(tokenizer.at("added_tokens").empty());
  for (const char* part : {"normalizer", "post_processor", "truncation", "padding"})
    EXPECT_TRUE(tokenizer.at(part).is_null()) << part;
  EXPECT_EQ(tokenizer.at("pre_tokenizer").at("add_prefix_space"), false);
  const Json config = Json::parse(ByteTokenizerConfig(512));
  EXPECT_EQ(config.at("model_max_length"), 512);
  EXPECT_EQ(config.at("clean_up_tokenization_spaces"), false);
  for (const char* token : {"bos_token", "eos_token", "pad_token", "unk_token"}) EXPECT_TRUE(config.at(token).is_null()) << token;
}

// Without one, who generates from nothing is told that `bos_token_id` has to be defined.
TEST(ByteTokenizerTest, GenerationFromNothingBeginsBehindALine) {
  EXPECT_EQ(Json::parse(ByteGenerationConfig(512)), Json({{"bos_token_id", '\n'}}));
}

// 256 tokens behind a prompt would ask GPT-2 for a position that it has not.
TEST(ByteTokenizerTest, ShortModelsWriteNoMoreThanTheyHavePositionsFor) {
  for (const int positions : {1, 2, 256, 511}) {
    EXPECT_EQ(Json::parse(ByteGenerationConfig(positions)).at("max_new_tokens"), std::max(1, positions / 2)) << positions;
  }
}

}  // namespace
}  // namespace motley
