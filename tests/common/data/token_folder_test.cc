#include "common/data/token_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/data/token_data.h"

namespace motley {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json Good() {
  const std::string bin(30, 'b'), idx = IndexBytes(8, 2, {3, 2, 4, 6}, {0, 2, 3, 4}), mask(2, 'm');
  return TokensJson({{"kind", "rows"},
                     {"seq_len", 6},
                     {"greatest_token", 999},
                     {"tokens", 15},
                     {"documents", 4},
                     {"rows", 3},
                     {"trained_tokens", 11}},
                    bin, idx, mask);
}
std::string Complaint(const json& text) {
  return std::string(ParseTokenFolder(text.dump(1), "/d/tokens.json").status().message());
}

TEST(TokenFolderTest, WhatPrepareWritesIsTaken) {
  const auto folder = ParseTokenFolder(Good().dump(1), "/d/tokens.json");
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(folder->kind, DataKind::kRows);
  EXPECT_EQ(folder->seq_len, 6);
  EXPECT_EQ(folder->type, TokenType::kUint16);
  EXPECT_EQ(folder->vocabulary, 1000);
  EXPECT_EQ(folder->greatest_token, 999);
  EXPECT_EQ(folder->tokens, 15);
  EXPECT_EQ(folder->documents, 4);
  EXPECT_EQ(folder->rows, 3);
  EXPECT_EQ(folder->trained_tokens, 11);
  EXPECT_EQ(folder->source_bytes, 5000);
  EXPECT_EQ(folder->tokenizer, Sha256Hex("tokenizer"));
  EXPECT_EQ(folder->tokens_bin, (PartedFile{30, {Sha256Hex(std::string(30, 'b'))}}));
  EXPECT_EQ(folder->mask_bin, (PartedFile{2, {Sha256Hex("mm")}}));
}

TEST(TokenFolderTest, WhatIsWrongIsNamed) {
  const std::pair<std::function<void(json&)>, std::string> cases[] = {
      {[](json& j) { j["format"] = "other"; }, "\"format\" must be \"motley-tokens\", got"},
      {[](json& j) { j["version"] = 2; }, "\"version\" must be 1 for this Motley, got 2"},
      {[](json& j) { j["kind"] = "pairs"; }, "\"kind\" must be \"stream\" or \"rows\""},
      {[](json& j) { j.erase("tokens"); }, "\"tokens\" must be a whole number from 1 to 281474976710656, and is not there"},
      {[](json& j) { j["tokens"] = -1; }, "\"tokens\" must be a whole number"},
      {[](json& j) { j["tokens"] = 1.5; }, "\"tokens\" must be a whole number"},
      {[](json& j) { j["tokens"] = UINT64_MAX; }, "\"tokens\" must be a whole number"},
      {[](json& j) { j["tokens"] = 19; }, "\"tokens\" must be at most those of 3 rows of 6"},
      {[](json& j) { j["greatest_token"] = 1000; }, "\"greatest_token\" must be a whole number from 0 to 999"},
      {[](json& j) { j["rows"] = 5; }, "\"rows\" must be a whole number from 1 to 4"},
      {[](json& j) { j["tokenizer"] = "abc"; }, "\"tokenizer\" must be the SHA-256 of tokenizer.json"},
      {[](json& j) { j["dtype"] = "int32"; }, "\"files\": \"tokens.bin\" has 30 bytes, where the folder's counts make 60"},
      {[](json& j) { j["documents"] = 5; }, "\"files\": \"tokens.idx\" has 114 bytes, where the folder's counts make 126"},
      {[](json& j) { j["files"]["mask.bin"]["bytes"] = 3; }, "\"mask.bin\" has 3 bytes, where the folder's counts make 2"},
      {[](json& j) { j["files"].erase("tokens.idx"); }, "\"files\": \"tokens.idx\" is not there"},
      {[](json& j) { j["files"]["tokens.bin"]["parts"] = json::array(); }, "\"parts\" must be a list of 1 SHA-256 digests"},
      {[](json& j) { j["files"]["tokens.bin"]["parts"][0] = "zz"; }, "\"parts\" must be a list of 1 SHA-256 digests"},
      {[](json& j) { j["files"] = 7; }, "\"files\" must be an object"},
      {[](json& j) { j = json::array(); }, "is no JSON object"},
  };
  for (const auto& [change, words] : cases) {
    json text = Good();
    change(text);
    EXPECT_THAT(Complaint(text), HasSubstr(words));
    EXPECT_THAT(Complaint(text), testing::StartsWith("data file /d/tokens.json"));
  }
}

TEST(TokenFolderTest, NoMoreValuesAreHeldThanDigestsHaveRoom) {
  json full = Good();
  for (int i = 0; i < 2000; ++i) full["files"]["tokens.bin"]["parts"].push_back(std::string(64, 'a'));
  EXPECT_THAT(Complaint(full), HasSubstr("\"parts\" must be a list of 1 SHA-256 digests"));
  full["files"]["tokens.bin"]["parts"] = std::vector<std::vector<int>>(2000);
  EXPECT_THAT(std::string(ParseTokenFolder(full.dump(), "/d/tokens.json").status().message()), HasSubstr("holds more than"));
}

TEST(TokenFolderTest, AStreamHasNoMaskAndNoRows) {
  json text = Good();
  text["kind"] = "stream";
  text["files"]["tokens.idx"] = PartsOf(IndexBytes(8, 2, {3, 2, 4, 6}, {0, 1, 2, 3, 4}));
  EXPECT_THAT(Complaint(text), HasSubstr("a stream has no mask.bin"));
  text["files"].erase("mask.bin");
  const auto folder = ParseTokenFolder(text.dump(), "t");
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(folder->rows, 0);
  EXPECT_EQ(folder->seq_len, 0);
}

TEST(TokenFolderTest, IsDigestedInPartsOf64Mebibytes) {
  json text = Good();
  text["kind"] = "stream";
  text["files"].erase("mask.bin");
  const int64_t tokens = kPartBytes / 2 + 1;
  text["tokens"] = tokens;
  text["trained_tokens"] = tokens - 1;
  text["files"]["tokens.idx"] = PartsOf(IndexBytes(8, 2, {3, 2, 4, 6}, {0, 1, 2, 3, 4}));
  text["files"]["tokens.bin"] = {{"bytes", tokens * 2}, {"parts", {Sha256Hex("a")}}};
  EXPECT_THAT(Complaint(text), HasSubstr("must be a list of 2 SHA-256 digests"));
  text["files"]["tokens.bin"]["parts"].push_back(Sha256Hex("b"));
  EXPECT_EQ(Complaint(text), "");
}

}  // namespace
}  // namespace motley
