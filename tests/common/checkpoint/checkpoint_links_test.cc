// What is read beneath a checkpoint folder is what lies there, and no link to something else.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/checkpoint/checkpoint.h"
#include "tests/common/base/temp_folder.h"
#include "tests/common/checkpoint/checkpoint_fixture.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

// Whoever writes in the folder would have others read elsewhere.
TEST(CheckpointLinksTest, LinksBeneathTheFolderAreNotFollowed) {
  TempFolder root, other;
  ASSERT_TRUE(WriteTestCheckpoint(root.path(), 20, TinyModel(true), 0.5).ok());
  for (const int64_t step : {40, 60}) ASSERT_TRUE(WriteTestCheckpoint(other.path(), step, TinyModel(true), 0.5).ok());
  fs::create_directory_symlink(other / NameOf(60), root / NameOf(60));
  fs::create_directory(root / NameOf(40));
  fs::create_symlink(other / (NameOf(40) + "/manifest.json"), root / (NameOf(40) + "/manifest.json"));
  const auto found = FindNewestCheckpoint(root.path(), {});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->folder, root / NameOf(20));
  EXPECT_EQ(found->skipped,
            (std::vector<std::string>{root / NameOf(60) + " is no folder, or a link to one",
                                      root / NameOf(40) + "/manifest.json is a symbolic link; give a regular file"}));
  // What people name may be one.
  fs::create_directory_symlink(other.path(), root / "all");
  EXPECT_EQ(FindNewestCheckpoint(root / "all", {})->manifest.step, 60);
  const auto named = FindCheckpointAt(root / NameOf(60), {});
  EXPECT_TRUE(named.ok()) << named.status();
}

// Of a folder that is open, whatever has its name by now.
TEST(CheckpointLinksTest, WhatIsOpenIsVerified) {
  TempFolder root;
  ASSERT_TRUE(WriteTestCheckpoint(root.path(), 20, TinyModel(true), 0.5).ok());
  const std::string folder = root / NameOf(20);
  const FileDescriptor at(open(folder.c_str(), O_PATH | O_DIRECTORY));
  fs::rename(folder, root / "moved");
  const auto manifest = ReadManifest(at, folder);
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_TRUE(VerifyCheckpoint(at, folder, *manifest).ok()) << VerifyCheckpoint(at, folder, *manifest);
  EXPECT_TRUE(absl::IsDataLoss(VerifyCheckpoint(folder, *manifest)));
  const std::string file = root / "moved/rank-0.bin";
  fs::rename(file, root / "bytes");
  fs::create_symlink(root / "bytes", file);
  EXPECT_TRUE(absl::IsDataLoss(VerifyCheckpoint(at, folder, *manifest))) << "by a link";
}

}  // namespace
}  // namespace motley
