#include "common/base/landlock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <functional>

#include "common/base/files.h"
#include "tests/common/base/temp_folder.h"

namespace motley {
namespace {

// Runs in a process of its own, which stays held for good. Status 0: all was as expected.
class Held {
 public:
  explicit Held(const std::vector<FileGrant>& grants) : kept_(RestrictFiles(grants)) {
    if (!kept_.ok()) Say(std::string(kept_.status().message()));
  }
  void Works(const std::string& what, const std::function<bool()>& act) {
    if (!act()) Say(what + " does not work, errno " + std::to_string(errno));
  }
  void IsRefused(const std::string& what, const std::function<bool()>& act) {
    if (act()) return Say(what + " works");
    if (errno != EACCES && errno != EXDEV) Say(what + " fails with errno " + std::to_string(errno));
  }
  [[noreturn]] void End() { _exit(wrong_ ? 1 : 0); }

 private:
  void Say(const std::string& what) {
    wrong_ = true;
    fprintf(stderr, "%s\n", what.c_str());
  }
  const absl::StatusOr<std::vector<FileDescriptor>> kept_;
  bool wrong_ = false;
};

std::function<bool()> Reads(std::string path) {
  return [path] { return FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC)).get() >= 0; };
}
std::function<bool()> Writes(std::string path) {
  return [path] { return FileDescriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)).get() >= 0; };
}
std::function<bool()> MakesFolder(std::string path) {
  return [path] { return ::mkdir(path.c_str(), 0700) == 0; };
}
std::function<bool()> Renames(std::string from, std::string to) {
  return [from, to] { return ::rename(from.c_str(), to.c_str()) == 0; };
}

class LandlockTest : public testing::Test {
 protected:
  void SetUp() override {
    const absl::StatusOr<int> version = LandlockVersion();
    if (!version.ok()) GTEST_SKIP() << version.status().message();
    version_ = *version;
    folder_.Write("data/text", "inside");
    folder_.Write("checkpoints/step-1/rank-0.bin", "weights");
    folder_.Write("outside/secret", "secret");
    folder_.Write("shared/old", "x");
  }
  std::vector<FileGrant> Grants() const {
    return {{folder_ / "data", FileAccess::kRead},
            {folder_ / "checkpoints", FileAccess::kChange},
            {folder_ / "shared", FileAccess::kShare},
            {folder_ / "not there", FileAccess::kChange}};
  }

  TempFolder folder_;
  int version_ = 0;
};

TEST_F(LandlockTest, GrantsAreKeptAndNothingElseIs) {
  const auto all = [this] {
    Held held(Grants());
    held.Works("reading data", Reads(folder_ / "data/text"));
    held.IsRefused("writing data", Writes(folder_ / "data/text"));
    held.IsRefused("a new file among data", Writes(folder_ / "data/new"));
    held.IsRefused("reading outside", Reads(folder_ / "outside/secret"));
    held.IsRefused("writing outside", Writes(folder_ / "outside/new"));
    held.IsRefused("a folder outside", MakesFolder(folder_ / "outside/folder"));
    held.Works("a folder of a checkpoint", MakesFolder(folder_ / "checkpoints/.tmp-2"));
    held.Works("a file of a checkpoint", Writes(folder_ / "checkpoints/.tmp-2/rank-0.bin"));
    held.Works("publishing it", Renames(folder_ / "checkpoints/.tmp-2", folder_ / "checkpoints/step-2"));
    held.Works("deleting an older one", [&] { return RemoveTree(folder_ / "checkpoints/step-1").ok(); });
    held.IsRefused("moving it out", Renames(folder_ / "checkpoints/step-2", folder_ / "outside/step-2"));
    held.Works("a new file among shared ones", Writes(folder_ / "shared/new"));
    held.IsRefused("a folder among shared ones", MakesFolder(folder_ / "shared/folder"));
    held.End();
  };
  EXPECT_EXIT(all(), testing::ExitedWithCode(0), "");
}

// The folder of a job, moved away and replaced by a link while the job trains.
TEST_F(LandlockTest, ASwappedLinkLeadsNowhere) {
  const auto swapped = [this] {
    Held held(Grants());
    ::rename((folder_ / "checkpoints/step-1").c_str(), (folder_ / "checkpoints/old").c_str());
    held.End();
  };
  EXPECT_EXIT(swapped(), testing::ExitedWithCode(0), "");
  ASSERT_EQ(::symlink((folder_ / "outside").c_str(), (folder_ / "checkpoints/job").c_str()), 0);
  ASSERT_EQ(::symlink((folder_ / "outside/secret").c_str(), (folder_ / "data/link").c_str()), 0);
  const auto follows = [this] {
    Held held(Grants());
    held.IsRefused("a checkpoint through a link", MakesFolder(folder_ / "checkpoints/job/.tmp-2"));
    held.IsRefused("a file through a link", Writes(folder_ / "checkpoints/job/rank-0.bin"));
    held.IsRefused("data through a link", Reads(folder_ / "data/link"));
    held.End();
  };
  EXPECT_EXIT(follows(), testing::ExitedWithCode(0), "");
}

TEST_F(LandlockTest, NamesMoveBetweenFoldersWhereTheKernelCanTell) {
  if (version_ < 2) GTEST_SKIP() << "Landlock 1 refuses every rename between folders";
  const auto moves = [this] {
    Held held(Grants());
    held.Works("a rename between folders",
               Renames(folder_ / "checkpoints/step-1/rank-0.bin", folder_ / "checkpoints/rank-0.bin"));
    held.End();
  };
  EXPECT_EXIT(moves(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace motley
