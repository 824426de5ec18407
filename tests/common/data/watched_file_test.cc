#include "common/data/watched_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/data/data_files.h"
#include "tests/common/base/another_tick.h"
#include "tests/common/base/temp_folder.h"

namespace motley {
namespace {

using ::testing::HasSubstr;

class WatchedFileTest : public testing::Test {
 protected:
  std::shared_ptr<const WatchedFile> Watch(const std::string& name) {
    path_ = folder_.Write(name, "0123456789");
    auto watched = WatchedFile::Watch(*OpenData(path_), path_);
    EXPECT_TRUE(watched.ok()) << watched.status();
    return *watched;
  }
  // As a backup program, rsync or an editor puts the time back.
  void WriteAndPutTheTimeBack() {
    struct stat before;
    ASSERT_EQ(::stat(path_.c_str(), &before), 0);
    AwaitAnotherTick(path_);
    std::fstream(path_, std::ios::in | std::ios::out | std::ios::binary).seekp(3).put('x');
    const timespec times[2] = {before.st_atim, before.st_mtim};
    ASSERT_EQ(::utimensat(AT_FDCWD, path_.c_str(), times, 0), 0);
  }
  static std::string Said(const WatchedFile& file) {
    char byte = 0;
    return std::string(file.Read(0, &byte, 1).message());
  }

  TempFolder folder_;
  std::string path_;
};

TEST_F(WatchedFileTest, AWriteBehindWhichTheTimeWasPutBackIsNoted) {
  const auto file = Watch("data");
  EXPECT_EQ(Said(*file), "");
  EXPECT_FALSE(file->TakeTouched());
  WriteAndPutTheTimeBack();
  EXPECT_EQ(Said(*file), "") << "nobody knows yet";
  EXPECT_TRUE(file->TakeTouched());
  EXPECT_EQ(Said(*file), "");
  EXPECT_FALSE(file->TakeTouched()) << "once for each change";
  WriteAndPutTheTimeBack();
  const int64_t before = file->altered_at();
  EXPECT_EQ(file->BeginComparison(), absl::OkStatus());
  EXPECT_FALSE(file->TakeTouched()) << "what is compared from here on has it";
  EXPECT_NE(file->altered_at(), before);
}

TEST_F(WatchedFileTest, WhatLeavesTheContentsEndsNothing) {
  const auto file = Watch("data");
  AwaitAnotherTick(path_);
  ASSERT_EQ(::chmod(path_.c_str(), 0600), 0);
  EXPECT_EQ(Said(*file), "");
  EXPECT_TRUE(file->TakeTouched());
  AwaitAnotherTick(path_);
  ASSERT_EQ(::link(path_.c_str(), (folder_ / "another name").c_str()), 0);
  EXPECT_EQ(Said(*file), "");
  EXPECT_TRUE(file->TakeTouched());
  ASSERT_EQ(::rename(folder_.Write("neighbour", "n").c_str(), (folder_ / "moved").c_str()), 0);
  EXPECT_EQ(Said(*file), "");
  EXPECT_FALSE(file->TakeTouched());
}

TEST_F(WatchedFileTest, WhatIsReplacedIsNoticedAlsoWhereItKeepsAnotherName) {
  const auto file = Watch("data");
  ASSERT_EQ(::link(path_.c_str(), (folder_ / "another name").c_str()), 0);
  ASSERT_EQ(::rename(folder_.Write("other", "0123456789").c_str(), path_.c_str()), 0);
  EXPECT_THAT(Said(*file), HasSubstr("data file " + path_ + " was removed or replaced after it was opened"));
  const auto gone = Watch("second");
  ASSERT_EQ(::rename(path_.c_str(), (folder_ / "elsewhere").c_str()), 0);
  EXPECT_THAT(Said(*gone), HasSubstr("was removed or replaced"));
}

TEST_F(WatchedFileTest, AFolderThatIsReplacedIsNoticed) {
  const auto file = Watch("folder/data");
  ASSERT_EQ(::rename((folder_ / "folder").c_str(), (folder_ / "before").c_str()), 0);
  folder_.Write("folder/data", "0123456789");
  EXPECT_THAT(Said(*file), HasSubstr("was removed or replaced"));
}

TEST_F(WatchedFileTest, ANameThatIsOnlyForPeopleIsNotLookedAt) {
  const std::string path = folder_.Write("data", "0123456789");
  const auto file = WatchedFile::Watch(*OpenData(path), "what the archive calls it");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_FALSE((*file)->is_named());
  EXPECT_EQ(Said(**file), "");
}

}  // namespace
}  // namespace motley
