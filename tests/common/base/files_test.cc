#include "common/base/files.h"

#include <gtest/gtest.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "common/base/fault.h"
#include "tests/common/base/temp_folder.h"

namespace motley {
namespace {

TEST(FilesTest, WritableIsAskedWithoutWriting) {
  const TempFolder folder;
  EXPECT_TRUE(CheckWritable(folder / "new").ok());
  EXPECT_FALSE(std::filesystem::exists(folder / "new"));
  EXPECT_TRUE(absl::IsNotFound(CheckWritable(folder / "no/such")));
  EXPECT_EQ(CheckWritable(folder / "").code(), absl::StatusCode::kInvalidArgument) << "the folder itself";
  EXPECT_TRUE(CheckWritable("beside_the_caller").ok());
}

TEST(FilesTest, ErrorsNameActionPathAndCause) {
  EXPECT_EQ(FileError(ENOENT, "read", "/x"), absl::NotFoundError("cannot read /x: No such file or directory"));
  EXPECT_EQ(FileError(EACCES, "read", "/x").code(), absl::StatusCode::kPermissionDenied);
  const passwd* const self = getpwuid(geteuid());
  const std::string user = self != nullptr ? self->pw_name : std::to_string(geteuid());
  for (const int error : {EACCES, EPERM}) {
    EXPECT_EQ(FileError(error, "make the folder", "/x").message(),
              "cannot make the folder /x: " + std::generic_category().message(error) + " (as user " + user + ")");
  }
  EXPECT_EQ(FileError(EFBIG, "write", "/x").code(), absl::StatusCode::kOutOfRange);
  for (const int error : {ENOSPC, EDQUOT})
    EXPECT_EQ(FileError(error, "write", "/x").code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(FileError(EIO, "read", "/x").code(), absl::StatusCode::kUnavailable);
  for (const int error : {EIO, ESTALE, ETIMEDOUT, ENOSPC, EDQUOT, EROFS, EACCES, EPERM, EMFILE, ENFILE, ENOMEM, EFBIG, ENODEV}) {
    EXPECT_EQ(FaultOf(FileError(error, "write", "/x")), Fault::kStorage) << error;
  }
  for (const int error : {ENOENT, ENOTDIR, EISDIR, EEXIST, ELOOP}) {
    EXPECT_EQ(FaultOf(FileError(error, "write", "/x")), Fault::kOurs) << error;
  }
  for (const int error : {EINVAL, ENOSYS, EXDEV}) EXPECT_EQ(FaultOf(FileError(error, "sync", "/x")), Fault::kNode) << error;
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

// A way that is made where a share was mounted fills the wrong disk.
TEST(FilesTest, OnlyTheLastPartOfAnOwnFolderIsMade) {
  TempFolder folder;
  EXPECT_EQ(FaultOf(MakeOwnFolder(folder / "a/b")), Fault::kStorage);
  EXPECT_FALSE(FileExists(folder / "a"));
  EXPECT_TRUE(MakeOwnFolder(folder / "a").ok());
  EXPECT_TRUE(MakeOwnFolder(folder / "a/b").ok() && MakeOwnFolder(folder / "a/b").ok());
  std::filesystem::create_directory_symlink(folder / "a/b", folder / "link");
  EXPECT_EQ(MakeOwnFolder(folder / "link").code(), absl::StatusCode::kInvalidArgument);
  const std::string file = folder.Write("file", "x");
  EXPECT_EQ(MakeOwnFolder(file).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(MakeOwnFolder(file + "/below").code(), absl::StatusCode::kInvalidArgument);
}

// Opening a pipe waits for a writer, a socket's reader for ever; a worker and the coordinator stood still with them.
TEST(FilesTest, OnlyRegularFilesAreRead) {
  TempFolder folder;
  const std::string pipe = folder / "pipe", socket = folder / "socket";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const FileDescriptor server(::socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{.sun_family = AF_UNIX};
  ASSERT_LT(socket.size(), sizeof(address.sun_path));
  std::copy(socket.begin(), socket.end(), address.sun_path);
  ASSERT_EQ(::bind(server.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  const auto refused = [](const std::string& path) { return ReadSmallFile(path, 10).status(); };
  EXPECT_EQ(refused(pipe), absl::InvalidArgumentError(pipe + " is a named pipe; give a regular file"));
  EXPECT_EQ(refused(socket), absl::InvalidArgumentError(socket + " is a socket; give a regular file"));
  EXPECT_EQ(refused("/dev/zero"), absl::InvalidArgumentError("/dev/zero is a device; give a regular file"));
  EXPECT_EQ(refused(folder.path()), absl::InvalidArgumentError(folder.path() + " is a folder; give a regular file"));
  EXPECT_FALSE(FileWriter::Create(pipe).ok());
}

TEST(FilesTest, ALinkIsFollowedOnlyWhereThatIsAsked) {
  TempFolder folder;
  const std::string file = folder.Write("file", "text"), link = folder / "link";
  ASSERT_EQ(::symlink(file.c_str(), link.c_str()), 0);
  EXPECT_EQ(*ReadSmallFile(link, 10), "text");
  EXPECT_EQ(OpenForRead(link, SymbolicLinks::kRefuse).status(),
            absl::InvalidArgumentError(link + " is a symbolic link; give a regular file"));
  EXPECT_TRUE(OpenForRead(file, SymbolicLinks::kRefuse).ok());
}

TEST(FilesTest, AWriterTouchesNothingThatWasThereBefore) {
  TempFolder folder;
  const std::string foreign = folder.Write("foreign", "theirs"), name = folder / "name", link = folder / "link";
  ASSERT_EQ(::link(foreign.c_str(), name.c_str()), 0);
  ASSERT_TRUE(WriteFileDurably(name, "ours").ok());
  EXPECT_EQ(TempFolder::Read(name), "ours");
  ASSERT_EQ(::symlink(foreign.c_str(), link.c_str()), 0);
  EXPECT_EQ(WriteFileDurably(link, "ours").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(TempFolder::Read(foreign), "theirs");
}

}  // namespace
}  // namespace motley
