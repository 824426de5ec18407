#include "common/files.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>

#include "tests/common/temp_folder.h"

namespace motley {
namespace {

TEST(FilesTest, ErrorsNameActionPathAndCause) {
  EXPECT_EQ(FileError(ENOENT, "read", "/x"), absl::NotFoundError("cannot read /x: No such file or directory"));
  EXPECT_EQ(FileError(EACCES, "read", "/x").code(), absl::StatusCode::kPermissionDenied);
  for (const int error : {ENOSPC, EDQUOT, EFBIG})
    EXPECT_EQ(FileError(error, "write", "/x").code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(FileError(EIO, "read", "/x").code(), absl::StatusCode::kUnavailable);
}

TEST(FilesTest, RoundTripAndPositions) {
  TempFolder folder;
  const std::string path = folder / "a";
  ASSERT_TRUE(WriteFileDurably(path, "0123456789").ok());
  EXPECT_EQ(*ReadSmallFile(path, 10), "0123456789");
  EXPECT_EQ(ReadSmallFile(path, 9).status().code(), absl::StatusCode::kInvalidArgument);
  auto file = OpenForRead(path);
  ASSERT_TRUE(file.ok());
  char bytes[4];
  ASSERT_TRUE(ReadAt(*file, path, 6, bytes, 4).ok());
  EXPECT_EQ(std::string(bytes, 4), "6789");
  EXPECT_EQ(ReadAt(*file, path, 7, bytes, 4).code(), absl::StatusCode::kDataLoss);
}

TEST(FilesTest, AnUnfinishedFileIsRemoved) {
  TempFolder folder;
  {
    auto writer = FileWriter::Create(folder / "a");
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(writer->Write("half", 4).ok());
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
}

TEST(FilesTest, Folders) {
  TempFolder folder;
  EXPECT_TRUE(MakeFolders(folder / "a/b/c").ok());
  EXPECT_TRUE(MakeFolders(folder / "a/b/c").ok());
  EXPECT_TRUE(SyncFolder(folder / "a/b").ok());
  EXPECT_TRUE(RemoveTree(folder / "a").ok());
  EXPECT_TRUE(RemoveTree(folder / "a").ok());
  EXPECT_EQ(SyncFolder(folder / "a").code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(MakeFolders(folder.Write("file", "x") + "/below").ok());
}

}  // namespace
}  // namespace motley
