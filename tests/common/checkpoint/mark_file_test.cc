#include "common/checkpoint/mark_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "common/base/fault.h"
#include "tests/common/base/no_descriptors.h"
#include "tests/common/base/temp_folder.h"
#include "tests/common/checkpoint/local_fixture.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

FileDescriptor Opened(const TempFolder& folder) {
  return FileDescriptor(::open(folder.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

// What ReadMark gives; "error" for a status.
std::string MarkIn(const TempFolder& folder) {
  const auto mark = ReadMark(Opened(folder), folder.path());
  EXPECT_TRUE(mark.ok()) << mark.status();
  return mark.ok() ? *mark : "error";
}

TEST(MarkFileTest, ReadsWhatWasWritten) {
  const TempFolder folder;
  EXPECT_EQ(MarkIn(folder), "") << "there is none";
  ASSERT_TRUE(WriteMark(folder.path(), kOneMark).ok());
  EXPECT_EQ(MarkIn(folder), kOneMark);
  EXPECT_EQ(TempFolder::Read(folder / kMarkName), std::string(kOneMark) + "\n");
  ASSERT_TRUE(WriteMark(folder.path(), kOtherMark).ok());
  EXPECT_EQ(MarkIn(folder), kOtherMark) << "of a save that is tried again";
}

TEST(MarkFileTest, NothingElseIsOne) {
  const TempFolder folder;
  const std::string mark = kOneMark;
  for (const std::string& text : {std::string(), mark.substr(1), mark + "0", std::string("A") + mark.substr(1),
                                  mark.substr(1) + "g", mark.substr(1) + "\n", std::string(32, '\0')}) {
    EXPECT_FALSE(IsMark(text)) << text;
    EXPECT_EQ(WriteMark(folder.path(), text).code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_FALSE(fs::exists(folder / kMarkName)) << text;
  }
  for (const std::string& text :
       {std::string(), std::string("\n"), mark, mark.substr(0, 9), mark + "\n\n", mark + " \n", mark + "x\n",
        " " + mark.substr(1) + "\n", mark + "\n" + mark + "\n", std::string(4'000'000, 'a')}) {
    folder.Write(kMarkName, text);
    EXPECT_EQ(MarkIn(folder), "") << text.substr(0, 99);
  }
}

TEST(MarkFileTest, LinksPipesAndFoldersAreNone) {
  const TempFolder folder;
  folder.Write("elsewhere", std::string(kOneMark) + "\n");
  fs::create_symlink(folder / "elsewhere", folder / kMarkName);
  EXPECT_EQ(MarkIn(folder), "");
  EXPECT_FALSE(WriteMark(folder.path(), kOtherMark).ok()) << "nor written through";
  EXPECT_EQ(TempFolder::Read(folder / "elsewhere"), std::string(kOneMark) + "\n");
  fs::remove(folder / kMarkName);
  ASSERT_EQ(::mkfifo((folder / kMarkName).c_str(), 0666), 0);
  EXPECT_EQ(MarkIn(folder), "") << "nobody waits for it";
  fs::remove(folder / kMarkName);
  fs::create_directory(folder / kMarkName);
  EXPECT_EQ(MarkIn(folder), "");
}

TEST(MarkFileTest, WhatCannotBeReadNowIsNotMissing) {
  const TempFolder folder;
  ASSERT_TRUE(WriteMark(folder.path(), kOneMark).ok());
  const FileDescriptor at = Opened(folder);
  const NoDescriptors none;
  const auto mark = ReadMark(at, folder.path());
  EXPECT_EQ(FaultOf(mark.status()), Fault::kStorage) << mark.status();
}

}  // namespace
}  // namespace motley
