#include "worker/daemon/rank_files.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "common/data/data_files.h"
#include "tests/common/base/temp_folder.h"

namespace motley::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(RankFilesTest, ARankWritesBeneathTheRootOfItsCheckpointsAlone) {
  const FileRoots roots({"/data", "/mnt/checkpoints", "/scratch"});
  EXPECT_THAT(RootArguments(RootsOfRank(roots, "/mnt/checkpoints/job")),
              ElementsAre("--read-root", "/data", "--read-root", "/mnt/checkpoints", "--read-root", "/scratch", "--write-root",
                          "/mnt/checkpoints"));
  EXPECT_TRUE(RootsOfRank(roots, "").write.empty()) << "it saves nothing";
  EXPECT_TRUE(RootsOfRank(roots, "/elsewhere").write.empty());
}

TEST(RankFilesTest, PeopleAreToldWhetherRanksAreHeld) {
  EXPECT_EQ(DescribeHold(3), "files: ranks are held to [files] roots by Landlock 3");
  EXPECT_THAT(DescribeHold(absl::FailedPreconditionError("this kernel has no Landlock")),
              HasSubstr("does not hold ranks to [files] roots: this kernel has no Landlock; let nobody"));
}

class HeldRankTest : public testing::Test {
 public:
  void SetUp() override {
    const absl::StatusOr<int> version = LandlockVersion();
    if (!version.ok()) GTEST_SKIP() << version.status().message();
    folder_.Write("root/text", "text");
    folder_.Write("secret/text", "secret");
    folder_.Write("root/job/step-1/manifest.json", "{}");
  }
  // In a process of its own, which stays held: it says the first thing that is not as it should be.
  void Run(void (HeldRankTest::*act)()) {
    EXPECT_EXIT(
        {
          const auto held = HoldRankToItsFiles({{folder_ / "root"}, {folder_ / "root"}});
          if (!held.ok()) Wrong("holding it fails");
          (this->*act)();
          _exit(0);
        },
        testing::ExitedWithCode(0), "");
  }
  static void Wrong(const std::string& what) {
    fprintf(stderr, "%s, errno %d\n", what.c_str(), errno);
    _exit(1);
  }

  void WhatLibrariesNeed() {
    if (FileDescriptor(::open("/dev/null", O_RDWR)).get() < 0) Wrong("/dev/null cannot be opened");
    if (FileDescriptor(::open("/proc/self/maps", O_RDONLY)).get() < 0) Wrong("/proc cannot be read");
    if (FileDescriptor(::open("/sys/devices/system/cpu/online", O_RDONLY)).get() < 0) Wrong("/sys cannot be read");
    if (FileDescriptor(::open("/proc/self/exe", O_RDONLY)).get() < 0) Wrong("the program cannot be read");
    if (::dlopen("libresolv.so.2", RTLD_NOW) == nullptr) Wrong("a library cannot be opened");
    const std::string shared = "/dev/shm/motley-test-" + std::to_string(::getpid());
    if (FileDescriptor(::open(shared.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600)).get() < 0) Wrong("no shared memory");
    if (::unlink(shared.c_str()) != 0) Wrong("shared memory stays");
    bool named = false;
    std::thread thread([&] { named = ::pthread_setname_np(::pthread_self(), "held") == 0; });
    thread.join();
    if (!named) Wrong("threads have no names");
  }
  void JobsFolderSwapped() {
    const std::string job = folder_ / "root/job";
    if (::mkdir((job + "/.tmp-2").c_str(), 0700) != 0) Wrong("a checkpoint cannot be written");
    if (::rename((job + "/.tmp-2").c_str(), (job + "/step-2").c_str()) != 0) Wrong("a checkpoint cannot be published");
    if (::mkdir((folder_ / "root/swapped/.tmp-3").c_str(), 0700) == 0 || errno != EACCES) Wrong("it writes outside");
  }
  void DataSwapped() {
    if (!OpenData(folder_ / "root/text").ok()) Wrong("the data cannot be read");
    if (OpenData(folder_ / "root/link").ok()) Wrong("it reads outside");
    if (FileRoots({folder_ / "root"}).OpenForRead("data.path", folder_ / "root/link").ok()) Wrong("it opens outside");
    bool read = true;
    std::thread thread([&] { read = OpenData(folder_ / "secret/text").ok(); });
    thread.join();
    if (read) Wrong("a later thread reads outside");
  }

 protected:
  TempFolder folder_;
};

TEST_F(HeldRankTest, LibrariesFindWhatTheyNeed) { Run(&HeldRankTest::WhatLibrariesNeed); }

TEST_F(HeldRankTest, CheckpointsDoNotFollowASwappedFolder) {
  ASSERT_EQ(::symlink((folder_ / "secret").c_str(), (folder_ / "root/swapped").c_str()), 0);
  Run(&HeldRankTest::JobsFolderSwapped);
}

TEST_F(HeldRankTest, DataDoesNotFollowALinkOut) {
  ASSERT_EQ(::symlink("../secret/text", (folder_ / "root/link").c_str()), 0);
  Run(&HeldRankTest::DataSwapped);
}

}  // namespace
}  // namespace motley::worker
