#include "common/base/parse_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/checkpoint/checkpoint_manifest.h"
#include "common/model/model.h"

namespace motley {
namespace {

using ::testing::HasSubstr;

std::string Nested(size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

std::string Why(std::string_view text) { return std::string(ParseJson(text, "here").status().message()); }

TEST(ParseJsonTest, ReadsWhatJsonAllows) {
  EXPECT_EQ((*ParseJson(R"({"a": [1, 2.5, null, true], "b": {"a": "x"}})", "here"))["b"]["a"], "x");
  EXPECT_EQ(ParseOrderedJson(R"({"z": 1, "a": 2})", "here")->begin().key(), "z");
  EXPECT_TRUE(ParseJson("7", "here")->is_number());
}

TEST(ParseJsonTest, SaysWhereAndNeverRepeatsTheText) {
  EXPECT_EQ(Why(R"({"a": 1,})"), "here: is not JSON: byte 9 (line 1, column 9)");
  EXPECT_EQ(Why("{\n \"a\": 1\n \"b\": 2}"), "here: is not JSON: byte 14 (line 3, column 4)");
  EXPECT_EQ(Why("// mine\n{}"), "here: is not JSON: byte 1 (line 1, column 1); JSON has no comments");
  EXPECT_EQ(Why("{\n\"a\": [0.0, -Infinity]}"),
            "here: is not JSON: byte 15 (line 2, column 13); JSON has neither NaN nor Infinity");
  EXPECT_THAT(Why("{\"a\": NaN}"), HasSubstr("(line 1, column 7); JSON has neither NaN nor Infinity"));
  EXPECT_THAT(Why(""), HasSubstr("here: is not JSON"));
  EXPECT_LT(Why("\"" + std::string(1 << 20, 'x')).size(), 300u);
  EXPECT_THAT(Why("{\"a\": \"\xff\"}"), HasSubstr("is not JSON"));
}

TEST(ParseJsonTest, ValuesCanBeLimited) {
  EXPECT_TRUE(ParseJson(R"([1, {"a": []}])", "here", 4).ok());
  EXPECT_EQ(ParseJson(R"([1, {"a": []}])", "here", 3).status().message(), "here: holds more than 3 values");
}

TEST(ParseJsonTest, DepthIsLimited) {
  EXPECT_TRUE(ParseJson(Nested(kDeepestJson), "here").ok());
  EXPECT_EQ(Why(Nested(kDeepestJson + 1)), "here: is nested deeper than 32 levels");
  EXPECT_EQ(Why(std::string(1 << 20, '[')), "here: is nested deeper than 32 levels");
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  EXPECT_EQ(Why(objects), "here: is nested deeper than 32 levels");
}

TEST(ParseJsonTest, AKeyStandsOnceInAnObject) {
  EXPECT_EQ(Why(R"({"job": "a", "step": 1, "job": "b"})"), "here: the key 'job' stands twice in one object");
  EXPECT_EQ(Why(R"([{"a": {"b": 1, "b": 1}}])"), "here: the key 'b' stands twice in one object");
  EXPECT_TRUE(ParseJson(R"({"a": {"b": 1}, "c": {"b": 1}, "d": [{"b": 1}, {"b": 1}]})", "here").ok());
  EXPECT_FALSE(ParseOrderedJson(R"({"a": 1, "a": 1})", "here").ok());
}

// Both were echoed by a recursive printer, and the stack ended.
TEST(ParseJsonTest, NestingKillsNeitherTheModelsReaderNorTheManifests) {
  const std::string nested = Nested(200000);
  const absl::Status model =
      ParseHfConfig(R"({"model_type": "llama", "sliding_window": )" + nested + "}", "model.config_json").status();
  EXPECT_EQ(model.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(model.message(), "model.config_json: is nested deeper than 32 levels");
  const absl::Status manifest =
      ManifestFromJson(R"({"format_version": 1, "model": )" + nested + "}", "/c/manifest.json").status();
  EXPECT_EQ(manifest.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(manifest.message()), HasSubstr("/c/manifest.json: is nested deeper than 32 levels"));
}

TEST(ParseJsonTest, WhatIsRefusedIsEchoedInShort) {
  const std::string window = "[\"" + std::string(400000, 'w') + "\"]";
  const absl::Status status = ParseHfConfig(R"({"model_type": "llama", "sliding_window": )" + window + "}", "c").status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("c: sliding_window must be an integer, got [\"www"));
  EXPECT_LT(status.message().size(), 500u);
}

}  // namespace
}  // namespace motley
