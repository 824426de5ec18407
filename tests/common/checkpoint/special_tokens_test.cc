#include "common/checkpoint/special_tokens.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

using Json = nlohmann::json;

constexpr char kTokenizer[] = R"({"added_tokens": [{"id": 7, "content": "<|end|>"}], "model": {"vocab": {"</s>": 2, "<s>": 1}}})";

Json Ids(std::vector<SmallFile> files, int64_t vocab_size = 10) {
  BaseModel base;
  base.files = std::move(files);
  return SpecialTokenIds(base, vocab_size);
}

TEST(SpecialTokensTest, HowToGenerateSaysIt) {
  const std::string generation = R"({"bos_token_id": 1, "eos_token_id": [2, 7], "pad_token_id": 0, "temperature": 0.6})";
  EXPECT_EQ(Ids({{"generation_config.json", generation}}),
            (Json{{"bos_token_id", 1}, {"eos_token_id", {2, 7}}, {"pad_token_id", 0}}));
}

TEST(SpecialTokensTest, ATokenIsLookedUpWhereTheTokenizerHasIt) {
  const Json end = {{"eos_token_id", 7}};
  EXPECT_EQ(Ids({{"tokenizer.json", kTokenizer}, {"tokenizer_config.json", R"({"eos_token": "<|end|>", "bos_token": null})"}}),
            end);
  EXPECT_EQ(Ids({{"tokenizer.json", kTokenizer},
                 {"tokenizer_config.json", R"({"eos_token": {"content": "</s>"}, "bos_token": "<s>", "pad_token": "<none>"})"}}),
            (Json{{"eos_token_id", 2}, {"bos_token_id", 1}}));
  EXPECT_EQ(Ids({{"tokenizer_config.json",
                  R"({"eos_token": "<|end|>", "added_tokens_decoder": {"6": {"content": "x"}, "7": {"content": "<|end|>"}}})"}}),
            end);
  EXPECT_EQ(Ids({{"tokenizer.json", kTokenizer}, {"special_tokens_map.json", R"({"eos_token": {"content": "<|end|>"}})"}}), end);
  EXPECT_EQ(Ids({{"tokenizer.json", R"({"model": {"type": "Unigram", "vocab": [["<unk>", 0.0], ["</s>", -1.5]]}})"},
                 {"tokenizer_config.json", R"({"eos_token": "</s>"})"}}),
            (Json{{"eos_token_id", 1}}));
}

// What generation_config.json does not say, the tokenizer may.
TEST(SpecialTokensTest, OneFileNeedNotSayAll) {
  EXPECT_EQ(Ids({{"generation_config.json", R"({"eos_token_id": 3})"},
                 {"tokenizer.json", kTokenizer},
                 {"tokenizer_config.json", R"({"eos_token": "<|end|>", "pad_token": "</s>"})"}}),
            (Json{{"eos_token_id", 3}, {"pad_token_id", 2}}));
}

TEST(SpecialTokensTest, WhatIsNoIdIsLeftOut) {
  EXPECT_EQ(Ids({}), Json::object());
  EXPECT_EQ(Ids({{"generation_config.json", R"({"bos_token_id": -1, "eos_token_id": [2, 10], "pad_token_id": "0"})"}}),
            Json::object());
  EXPECT_EQ(Ids({{"tokenizer.json", kTokenizer}, {"tokenizer_config.json", R"({"eos_token": "<|end|>"})"}}, 7), Json::object())
      << "of a larger vocabulary than the model's";
  for (const char* odd : {"", "[]", "{", "null", R"({"eos_token": 3})", R"({"eos_token": {"content": null}})",
                          R"({"eos_token": "<|end|>", "added_tokens_decoder": [1]})"}) {
    EXPECT_EQ(Ids({{"tokenizer_config.json", odd}, {"tokenizer.json", odd}}), Json::object()) << odd;
    EXPECT_EQ(Ids({{"generation_config.json", odd}}), Json::object()) << odd;
  }
  EXPECT_EQ(Ids({{"tokenizer.json", R"({"added_tokens": 3, "model": {"vocab": [3, [], ["a"]]}})"},
                 {"tokenizer_config.json", R"({"eos_token": "b"})"}}),
            Json::object());
}

}  // namespace
}  // namespace motley
