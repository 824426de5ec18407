#include "common/checkpoint/checkpoint_manifest.h"

#include <gtest/gtest.h>

#include <string>

#include "common/base/parse_json.h"
#include "common/base/sha256.h"
#include "tests/common/checkpoint/checkpoint_fixture.h"

namespace motley {
namespace {

CheckpointManifest ManifestOfFormat(int format, const std::string& node) {
  CheckpointManifest manifest = TestManifest(40, TinyModel(true), NewestEpoch(3, kOneUid));
  manifest.format_version = format;
  CheckpointFile file{.name = "rank-0.bin", .node = node, .bytes = 8};
  file.pieces = {{1, StateTensor::kExpAvg, 2, 4, 0}};
  format == 1 ? void(file.digest = Sha256Hex("x")) : file.blocks.push_back(Sha256Hex("x"));
  manifest.files = {file};
  return manifest;
}

absl::StatusOr<CheckpointManifest> ReadAgain(const CheckpointManifest& manifest) {
  return ManifestFromJson(ManifestToJson(manifest), "/c/manifest.json");
}

// The text with another value of "node", and the digest of that.
std::string WithNode(const CheckpointManifest& manifest, const nlohmann::json& node) {
  nlohmann::json json = nlohmann::json::parse(ManifestToJson(manifest));
  json["files"][0]["node"] = node;
  json.erase("manifest_sha256");
  json["manifest_sha256"] = Sha256Hex(json.dump());
  return json.dump();
}

TEST(CheckpointManifestTest, ALocalOneSaysWhereEachFileLies) {
  const CheckpointManifest manifest = ManifestOfFormat(kLocalCheckpointFormat, "big.lab_2");
  EXPECT_TRUE(manifest.is_local());
  const auto again = ReadAgain(manifest);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->is_local());
  ASSERT_EQ(again->files.size(), 1u);
  EXPECT_EQ(again->files[0].node, "big.lab_2");
  EXPECT_EQ(again->files[0].blocks, manifest.files[0].blocks);
  EXPECT_EQ(ManifestToJson(*again), ManifestToJson(manifest));
}

TEST(CheckpointManifestTest, OtherFormatsHaveNoNode) {
  for (const int format : {1, 2, kSharedCheckpointFormat}) {
    const CheckpointManifest manifest = ManifestOfFormat(format, "big");
    const std::string text = ManifestToJson(manifest);
    EXPECT_EQ(text.find("node"), std::string::npos) << text;
    const auto again = ManifestFromJson(text, "/c/manifest.json");
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_FALSE(again->is_local());
    EXPECT_EQ(again->files[0].node, "");
    const auto with_node = ManifestFromJson(WithNode(manifest, "small"), "/c/manifest.json");
    ASSERT_TRUE(with_node.ok()) << with_node.status();
    EXPECT_EQ(with_node->files[0].node, "small");
  }
  EXPECT_EQ(CheckpointManifest().format_version, kSharedCheckpointFormat) << "what every build since format 3 reads";
}

TEST(CheckpointManifestTest, ALocalFileMustHaveANode) {
  const auto none = ReadAgain(ManifestOfFormat(kLocalCheckpointFormat, ""));
  EXPECT_EQ(none.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Message(none.status()), "/c/manifest.json: rank-0.bin has no node");
}

TEST(CheckpointManifestTest, ANodeIsAName) {
  for (const int format : {kSharedCheckpointFormat, kLocalCheckpointFormat}) {
    const CheckpointManifest manifest = ManifestOfFormat(format, "big");
    for (const nlohmann::json& node : {nlohmann::json("../x"), nlohmann::json(".."), nlohmann::json(""), nlohmann::json("a/b"),
                                       nlohmann::json(std::string(64, 'n')), nlohmann::json(3), nlohmann::json()}) {
      const auto read = ManifestFromJson(WithNode(manifest, node), "/c/manifest.json");
      EXPECT_EQ(read.status().code(), absl::StatusCode::kDataLoss) << node.dump() << ": " << read.status();
    }
    EXPECT_TRUE(ManifestFromJson(WithNode(manifest, std::string(63, 'n')), "/c/manifest.json").ok());
  }
}

TEST(CheckpointManifestTest, ANewerFormatIsNotDamage) {
  const auto newer = ReadAgain(ManifestOfFormat(kNewestCheckpointFormat + 1, "big"));
  EXPECT_EQ(newer.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Message(newer.status()), "/c/manifest.json has format version 5; this program reads versions up to 4");
}

TEST(CheckpointManifestTest, TheEntryOfARankHasItsNode) {
  CheckpointFile file = ManifestOfFormat(kLocalCheckpointFormat, "small").files[0];
  auto again = FileEntryFromJson(FileEntryToJson(file));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->node, "small");
  file.node = "";
  EXPECT_EQ(FileEntryToJson(file).find("node"), std::string::npos);
  again = FileEntryFromJson(FileEntryToJson(file));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->node, "");
  file.node = "a/b";
  EXPECT_EQ(FileEntryFromJson(FileEntryToJson(file)).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(CheckpointManifestTest, DigestIsTheOneInTheText) {
  const CheckpointManifest manifest = ManifestOfFormat(kLocalCheckpointFormat, "big");
  const std::string text = ManifestToJson(manifest), digest = ManifestDigest(text);
  EXPECT_EQ(digest.size(), 64u);
  EXPECT_NE(text.find("\"manifest_sha256\": \"" + digest + "\""), std::string::npos);
  nlohmann::json json = nlohmann::json::parse(text);
  json.erase("manifest_sha256");
  EXPECT_EQ(digest, Sha256Hex(json.dump()));
  CheckpointManifest other = manifest;
  other.files[0].node = "small";
  EXPECT_NE(ManifestDigest(ManifestToJson(other)), digest) << "where a file lies is part of it";
  for (const char* text_of_others : {"", "{", "[]", "{}", R"({"manifest_sha256": 3})"})
    EXPECT_EQ(ManifestDigest(text_of_others), "");
}

}  // namespace
}  // namespace motley
