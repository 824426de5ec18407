#include "common/base/beneath.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "common/base/fault.h"
#include "tests/common/base/temp_folder.h"

namespace motley {
namespace {

using ::testing::HasSubstr;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

ino_t InodeOf(const std::string& path) {
  struct stat found = {};
  ::stat(path.c_str(), &found);
  return found.st_ino;
}
ino_t InodeOf(const FileDescriptor& file) {
  struct stat found = {};
  ::fstat(file.get(), &found);
  return found.st_ino;
}

TEST(BeneathTest, APathIsAbsoluteAndPlain) {
  for (const char* good : {"/data", "/data/a b", "/data/..a/b..", "/d\xc3\xa4ta"}) EXPECT_TRUE(CheckPath("k", good).ok()) << good;
  for (const std::string& bad : {std::string(""), std::string("data"), std::string("/data/../etc"), std::string("/data/.."),
                                 std::string("/da\nta"), std::string("/data\0x", 7), std::string("/d\x7f")}) {
    EXPECT_EQ(CheckPath("data.path", bad).code(), absl::StatusCode::kInvalidArgument) << bad;
  }
  EXPECT_EQ(Message(CheckPath("data.path", "/a\nb")), "data.path must not hold control characters, got '/a\\nb'");
}

class BeneathFolderTest : public testing::TestWithParam<Resolver> {
 protected:
  BeneathFolderTest() {
    folder_.Write("root/data/text", "inside");
    folder_.Write("outside/secret", "secret");
    top_ = FileDescriptor(::open((folder_ / "root").c_str(), O_PATH | O_DIRECTORY));
  }
  void Link(const std::string& target, const std::string& name) {
    ASSERT_EQ(::symlink(target.c_str(), (folder_ / "root" / name).c_str()), 0);
  }
  absl::StatusOr<FileDescriptor> Open(const std::string& path) { return OpenBeneath(top_, path, GetParam()); }

  struct Folder : TempFolder {
    std::filesystem::path operator/(const std::string& name) const { return std::filesystem::path(path()) / name; }
  } folder_;
  FileDescriptor top_;
};

TEST_P(BeneathFolderTest, WhatLiesBeneathIsOpened) {
  ASSERT_TRUE(Open("data/text").ok());
  EXPECT_EQ(InodeOf(*Open("data//./text")), InodeOf((folder_ / "root/data/text").string()));
  EXPECT_EQ(InodeOf(*Open(".")), InodeOf((folder_ / "root").string()));
  EXPECT_EQ(Open("data/none").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Open("data/text/below").status().code(), absl::StatusCode::kNotFound);
}

TEST_P(BeneathFolderTest, NothingLeadsOut) {
  Link((folder_ / "outside").string(), "absolute");
  Link("../outside", "relative");
  Link("../../outside/secret", "data/up");
  Link("/proc/self/root", "magic");
  for (const char* path : {"../outside/secret", "data/../../outside/secret", "absolute/secret", "absolute", "relative/secret",
                           "data/up", "magic/etc/passwd"}) {
    EXPECT_EQ(Open(path).status().code(), absl::StatusCode::kPermissionDenied) << path << ": " << Open(path).status();
  }
}

TEST_P(BeneathFolderTest, LinksThatStayInsideAreFollowedWhereTheKernelWatches) {
  Link("data", "other");
  const auto opened = Open("other/text");
  if (GetParam() == Resolver::kParts || !opened.ok()) {
    EXPECT_EQ(OpenBeneath(top_, "other/text", Resolver::kParts).status().code(), absl::StatusCode::kPermissionDenied);
  } else {
    EXPECT_EQ(InodeOf(*opened), InodeOf((folder_ / "root/data/text").string()));
  }
}

TEST_P(BeneathFolderTest, FilesAndFoldersAreOpenedForReading) {
  const auto open = [&](const std::string& path) { return OpenFileOrFolderBeneath(top_, path, GetParam()); };
  char byte = 0;
  ASSERT_TRUE(open("data/text").ok());
  EXPECT_EQ(::read(open("data/text")->get(), &byte, 1), 1);
  for (const char* path : {".", "data"}) {
    ASSERT_TRUE(open(path).ok()) << open(path).status();
    EXPECT_EQ(::fcntl(open(path)->get(), F_GETFL) & O_PATH, 0) << path << ": its entries can be read";
  }
  Link("../outside", "relative");
  EXPECT_EQ(open("relative").status().code(), absl::StatusCode::kPermissionDenied);
  ASSERT_EQ(::mkfifo((folder_ / "root/pipe").c_str(), 0600), 0);
  EXPECT_EQ(open("pipe").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(BeneathFolderTest, FoldersAreMadeInsideAndNowhereElse) {
  ASSERT_TRUE(MakeFolderBeneath(top_, "checkpoints/a/b", GetParam()).ok());
  ASSERT_TRUE(MakeFolderBeneath(top_, "checkpoints/a/b", GetParam()).ok()) << "it may be there";
  EXPECT_TRUE(std::filesystem::is_directory(folder_ / "root/checkpoints/a/b"));
  Link("../outside", "relative");
  Link("../outside/new", "dangling");
  EXPECT_FALSE(MakeFolderBeneath(top_, "relative/new", GetParam()).ok());
  EXPECT_FALSE(MakeFolderBeneath(top_, "dangling", GetParam()).ok());
  EXPECT_FALSE(MakeFolderBeneath(top_, "../outside/new", GetParam()).ok());
  EXPECT_FALSE(MakeFolderBeneath(top_, "data/text", GetParam()).ok()) << "a file";
  EXPECT_FALSE(std::filesystem::exists(folder_ / "outside/new"));
}

// A folder that somebody swaps for a link while it is opened: each answer is the file inside or an error.
TEST_P(BeneathFolderTest, AFolderSwappedForALinkNeverLeadsOut) {
  folder_.Write("outside/text", "not for us");
  const ino_t inside = InodeOf((folder_ / "root/data/text").string());
  Link("../outside", "decoy");
  std::atomic<bool> stop = false;
  std::thread swapper([&] {
    const std::string data = (folder_ / "root/data").string(), decoy = (folder_ / "root/decoy").string();
    while (!stop) ::renameat2(AT_FDCWD, data.c_str(), AT_FDCWD, decoy.c_str(), RENAME_EXCHANGE);
  });
  for (int i = 0; i < 5000; ++i) {
    const auto opened = Open("data/text");
    if (opened.ok()) EXPECT_EQ(InodeOf(*opened), inside);
  }
  stop = true;
  swapper.join();
}

INSTANTIATE_TEST_SUITE_P(Resolvers, BeneathFolderTest, testing::Values(Resolver::kKernel, Resolver::kParts),
                         [](const auto& info) { return info.param == Resolver::kKernel ? "Kernel" : "Parts"; });

TEST(FileRootsTest, PathsOfJobsLieBeneathARoot) {
  TempFolder folder;
  const std::string text = folder.Write("data/text", "x");
  const FileRoots roots({folder / "none", folder / "data"});
  EXPECT_TRUE(roots.Open("data.path", text).ok());
  EXPECT_TRUE(roots.Open("data.path", folder / "data").ok()) << "the root itself";
  EXPECT_EQ(roots.Open("data.path", folder / "data/none").status().code(), absl::StatusCode::kNotFound);
  const absl::Status foreign = roots.Open("data.path", "/etc/passwd").status();
  EXPECT_EQ(foreign.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(Message(foreign), HasSubstr("data.path: '/etc/passwd' lies beneath none of this node's folders for jobs: "));
  EXPECT_EQ(roots.Open("data.path", folder / "database").status().code(), absl::StatusCode::kPermissionDenied)
      << "a root is a folder, not the beginning of a name";
  EXPECT_EQ(roots.Open("data.path", folder / "data/../x").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(roots.MakeFolder("checkpoint.folder", folder / "data/checkpoints/job").ok());
  EXPECT_TRUE(std::filesystem::is_directory(folder / "data/checkpoints/job"));
}

// What is wrong with the path repeats; an input or output error, too many open files, a right that was refused may not.
TEST(FileRootsTest, ErrorsOfTheFileSystemAreTheStorages) {
  TempFolder folder;
  const std::string text = folder.Write("data/text", "x");
  const FileRoots roots({folder / "data"});
  EXPECT_EQ(FaultOf(roots.OpenForRead("data.path", folder / "data/none").status()), Fault::kOurs);
  EXPECT_EQ(FaultOf(roots.OpenForRead("data.path", "/etc/passwd").status()), Fault::kOurs);
  ASSERT_EQ(::symlink("/etc/passwd", (folder / "data/out").c_str()), 0);
  EXPECT_EQ(FaultOf(roots.OpenForRead("data.path", folder / "data/out").status()), Fault::kOurs);
  // One descriptor is left, which the root takes.
  struct rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = ::dup(STDIN_FILENO);
  ASSERT_GE(next, 0);
  ::close(next);
  struct rlimit few = before;
  few.rlim_cur = static_cast<rlim_t>(next) + 1;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const absl::Status status = roots.OpenForRead("data.path", text).status();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(FaultOf(status), Fault::kStorage) << status;
  EXPECT_THAT(Message(status), HasSubstr("data.path: '" + text + "': cannot open text: Too many open files"));
}

TEST(FileRootsTest, WithoutRootsTheKeyIsNamed) {
  const absl::Status status = FileRoots({}).Open("data.path", "/data").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(status), HasSubstr("data.path: this node gives no folder to jobs; set roots in [files]"));
}

TEST(FileRootsTest, RootsThatAreNotThereAreSaid) {
  TempFolder folder;
  const std::string file = folder.Write("data/text", "x");
  const std::vector<std::string> missing = FileRoots({folder / "data", folder / "none", file}).Missing();
  ASSERT_EQ(missing.size(), 2u);
  EXPECT_EQ(missing[0], "cannot open the root of files.roots " + (folder / "none") +
                            ": No such file or directory; jobs find nothing beneath it until it is there");
  EXPECT_THAT(missing[1], HasSubstr(file + ": Not a directory"));
}

TEST(FileRootsTest, RootsAreAbsoluteAndNotEverything) {
  EXPECT_TRUE(FileRoots::Validate({"/data", "/mnt/checkpoints/"}).ok());
  for (const char* bad : {"data", "/", "//", "/a/../b", ""}) EXPECT_FALSE(FileRoots::Validate({bad}).ok()) << bad;
}

}  // namespace
}  // namespace motley
