#include "common/checkpoint/export_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <set>

#include "common/checkpoint/checkpoint.h"
#include "tests/common/base/temp_folder.h"
#include "tests/common/checkpoint/checkpoint_fixture.h"

namespace motley {
namespace {

using testing::HasSubstr;

TEST(ExportFolderTest, OneExportAtATimeHasIt) {
  TempFolder root;
  ASSERT_TRUE(WriteTestCheckpoint(root.path(), 40, TinyModel(true), 0.3).ok());
  {
    const auto first = ExportFolder::Claim(root / "out");
    ASSERT_TRUE(first.ok()) << first.status();
    const absl::Status second = ExportHuggingFace(root / NameOf(40), root / "out");
    EXPECT_EQ(second.code(), absl::StatusCode::kAlreadyExists);
    EXPECT_THAT(std::string(second.message()),
                HasSubstr("another export writes into " + (root / "out") + " now; choose another"));
    EXPECT_EQ(NamesIn(root / "out"), std::set<std::string>());
  }
  EXPECT_TRUE(ExportHuggingFace(root / NameOf(40), root / "out").ok());
}

TEST(ExportFolderTest, AFileInItsWayIsNoMissingCheckpoint) {
  TempFolder root;
  root.Write("file", "somebody's");
  const absl::Status file = ExportFolder::Claim(root / "file").status(), beneath = ExportFolder::Claim(root / "file/x").status();
  EXPECT_EQ(file.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(file.message(), (root / "file") + " is no folder; give a folder to write into, or remove it");
  EXPECT_EQ(beneath.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(beneath.message()), HasSubstr("cannot make the folder " + (root / "file/x") + ": Not a directory"));
  EXPECT_EQ(TempFolder::Read(root / "file"), "somebody's");
}

// Of a machine whose claim is not seen here.
TEST(ExportFolderTest, WhatAnotherExportWroteMeanwhileStays) {
  TempFolder root;
  std::optional<ExportFolder> out = *ExportFolder::Claim(root / "out");
  ASSERT_TRUE(WriteFileDurably(out->Partial("model.safetensors"), "ours").ok());
  root.Write("out/model.safetensors", "theirs");
  const absl::Status status = out->Publish("model.safetensors");
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(status.message()), HasSubstr("another export wrote " + (root / "out/model.safetensors")));
  EXPECT_EQ(TempFolder::Read(root / "out/model.safetensors"), "theirs");
  out.reset();
  EXPECT_EQ(NamesIn(root / "out"), std::set<std::string>{"model.safetensors"}) << "nothing of ours is left";
}

TEST(ExportFolderTest, WhatAKilledExportLeftIsInNobodysWay) {
  TempFolder root;
  root.Write("out/model.safetensors.partial", "of an older build");
  root.Write("out/model-00001-of-00002.safetensors.4711-0a1b2c3d.partial", "half");
  root.Write("out/model-00001-of-00002.safetensors", "a shard without an index");
  root.Write("out/notes.partial", "somebody's");
  auto out = ExportFolder::Claim(root / "out");
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(NamesIn(root / "out"), (std::set<std::string>{"model-00001-of-00002.safetensors", "notes.partial"}));
  ASSERT_TRUE(WriteFileDurably(out->Partial("model-00001-of-00002.safetensors"), "whole").ok());
  EXPECT_TRUE(out->PublishPart("model-00001-of-00002.safetensors").ok());
  EXPECT_EQ(TempFolder::Read(root / "out/model-00001-of-00002.safetensors"), "whole");
}

}  // namespace
}  // namespace motley
