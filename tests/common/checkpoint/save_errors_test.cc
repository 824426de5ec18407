// Every call of a save, from its token to its published name, refused once with every errno that file systems have: what the job
// does then (docs/use/checkpoints.md, "When a call is refused"), and that nothing is lost by it. What pruning meets is only
// logged.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <filesystem>
#include <string>
#include <vector>

#include "common/base/fault.h"
#include "common/base/files.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/checkpoint_look.h"
#include "common/checkpoint/checkpoint_manifest.h"
#include "tests/common/base/temp_folder.h"
#include "tests/common/checkpoint/checkpoint_fixture.h"

namespace motley {
namespace {

// The calls of the save that this thread makes.
struct WatchedCalls {
  bool watched = false;
  int refuse = -1;  // the call with this number fails with `error`
  int error = 0;
  std::vector<std::string> made;
};
thread_local WatchedCalls* watched_calls = nullptr;

bool IsRefused(const char* name) {
  WatchedCalls* const calls = watched_calls;
  if (calls == nullptr || !calls->watched) return false;
  const int number = static_cast<int>(calls->made.size());
  calls->watched = false;  // the vector's and the test's own calls
  calls->made.emplace_back(name);
  calls->watched = true;
  if (number != calls->refuse) return false;
  errno = calls->error;
  return true;
}

template <typename Function>
Function* Real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace
}  // namespace motley

// In the place of the C library's, for this program and the libraries that it loads.
extern "C" {

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  static auto* const real = motley::Real<int(const char*, int, ...)>("open");
  return motley::IsRefused("open") ? -1 : real(path, flags, mode);
}

int openat(int folder, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  static auto* const real = motley::Real<int(int, const char*, int, ...)>("openat");
  return motley::IsRefused("openat") ? -1 : real(folder, path, flags, mode);
}

ssize_t read(int fd, void* to, size_t bytes) {
  static auto* const real = motley::Real<ssize_t(int, void*, size_t)>("read");
  return motley::IsRefused("read") ? -1 : real(fd, to, bytes);
}

ssize_t write(int fd, const void* from, size_t bytes) {
  static auto* const real = motley::Real<ssize_t(int, const void*, size_t)>("write");
  return motley::IsRefused("write") ? -1 : real(fd, from, bytes);
}

int fsync(int fd) {
  static auto* const real = motley::Real<int(int)>("fsync");
  return motley::IsRefused("fsync") ? -1 : real(fd);
}

// The descriptor is gone all the same, as Linux has it.
int close(int fd) {
  static auto* const real = motley::Real<int(int)>("close");
  const bool refused = motley::IsRefused("close");
  const int error = errno, closed = real(fd);
  if (!refused) return closed;
  errno = error;
  return -1;
}

int mkdirat(int folder, const char* path, mode_t mode) noexcept {
  static auto* const real = motley::Real<int(int, const char*, mode_t)>("mkdirat");
  return motley::IsRefused("mkdirat") ? -1 : real(folder, path, mode);
}

int stat(const char* path, struct stat* found) noexcept {
  static auto* const real = motley::Real<int(const char*, struct stat*)>("stat");
  return motley::IsRefused("stat") ? -1 : real(path, found);
}

int lstat(const char* path, struct stat* found) noexcept {
  static auto* const real = motley::Real<int(const char*, struct stat*)>("lstat");
  return motley::IsRefused("lstat") ? -1 : real(path, found);
}

int fstat(int fd, struct stat* found) noexcept {
  static auto* const real = motley::Real<int(int, struct stat*)>("fstat");
  return motley::IsRefused("fstat") ? -1 : real(fd, found);
}

int fstatat(int folder, const char* path, struct stat* found, int flags) noexcept {
  static auto* const real = motley::Real<int(int, const char*, struct stat*, int)>("fstatat");
  return motley::IsRefused("fstatat") ? -1 : real(folder, path, found, flags);
}

int rename(const char* from, const char* to) noexcept {
  static auto* const real = motley::Real<int(const char*, const char*)>("rename");
  return motley::IsRefused("rename") ? -1 : real(from, to);
}

int unlink(const char* path) noexcept {
  static auto* const real = motley::Real<int(const char*)>("unlink");
  return motley::IsRefused("unlink") ? -1 : real(path);
}

int unlinkat(int folder, const char* path, int flags) noexcept {
  static auto* const real = motley::Real<int(int, const char*, int)>("unlinkat");
  return motley::IsRefused("unlinkat") ? -1 : real(folder, path, flags);
}

DIR* opendir(const char* path) {
  static auto* const real = motley::Real<DIR*(const char*)>("opendir");
  return motley::IsRefused("opendir") ? nullptr : real(path);
}

DIR* fdopendir(int fd) {
  static auto* const real = motley::Real<DIR*(int)>("fdopendir");
  return motley::IsRefused("fdopendir") ? nullptr : real(fd);
}

}  // extern "C"

namespace motley {
namespace {

namespace fs = std::filesystem;

// What each errno may come to, besides that the save goes on without the call.
struct Refusals {
  Fault fault;
  std::vector<int> errors;
};
const Refusals kRefusals[] = {
    // Tried again later.
    {Fault::kStorage, {EIO,   ENOSPC, EDQUOT, EROFS, EACCES, EPERM, ESTALE, ETIMEDOUT, EMFILE,    ENFILE, ENOMEM,
                       EFBIG, ENODEV, ENXIO,  EINTR, EAGAIN, EBUSY, ENOENT, ENOTCONN,  EREMOTEIO, ENOTSUP}},
    // The file system of this machine knows no such call.
    {Fault::kNode, {EINVAL, ENOSYS, EXDEV}},
    // Something else has the name.
    {Fault::kOurs, {EEXIST, EISDIR, ELOOP, ENAMETOOLONG, ENOTDIR, ENOTEMPTY}},
};

// A rename to a name that is taken is answered by another way, with or without us.
bool MustBeDone(const std::string& call, int error) {
  return call == "fsync" || call == "write" || (call == "rename" && error != EEXIST && error != ENOTEMPTY);
}

constexpr char kToken[] = "3-7-1";
constexpr int64_t kOlderStep = 5, kStep = 7;

// In memory where there is such a folder: thousands of saves, each of which waits for its disk.
const char* const kFolder = ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";

class SaveErrors : public testing::Test {
 protected:
  // As one rank alone saves: worker/engine/checkpointer.cc.
  static absl::Status Save(const std::string& root) {
    const std::string temporary = root + "/" + TemporaryCheckpointFolderName(kStep, kEpoch);
    if (absl::Status status = WriteToken(temporary, kToken); !status.ok()) return status;
    std::vector<std::vector<float>> arrays;
    std::vector<PieceData> pieces;
    const std::vector<UnitSpec> units = ParameterLayout(Model());
    for (int unit = 0; unit < static_cast<int>(units.size()); ++unit) {
      for (int t = 0; t < kNumStateTensors; ++t) {
        arrays.emplace_back(units[unit].num_elements, 1.0f);
        pieces.push_back({unit, static_cast<StateTensor>(t), 0, units[unit].num_elements,
                          [&arrays, i = arrays.size() - 1] { return arrays[i].data(); }});
      }
    }
    const auto file = WriteCheckpointFile(temporary, "rank-0.bin", DType::kFloat32, pieces);
    if (!file.ok()) return file.status();
    // What the ranks make of both looks is tests/worker/engine/save_verdict_test.cc's.
    if (ReadToken(temporary, absl::ZeroDuration()) != kToken || !FilesNotSeen(temporary, {*file}, absl::ZeroDuration()).empty()) {
      return WithFault(absl::UnavailableError("not seen"), Fault::kStorage);
    }
    if (absl::Status status = RemoveToken(temporary); !status.ok()) return status;
    CheckpointManifest manifest;
    manifest.job = "job-1";
    manifest.epoch = kEpoch;
    manifest.step = kStep;
    manifest.model = Model();
    manifest.files = {*file};
    return PublishCheckpoint(root, manifest, NewestEpoch(kEpoch)).status();
  }

  // With one call refused; a negative one: with none.
  absl::Status SaveWith(const std::string& root, int refuse, int error) {
    calls_ = {.watched = true, .refuse = refuse, .error = error};
    watched_calls = &calls_;
    const absl::Status status = Save(root);
    watched_calls = nullptr;
    return status;
  }

  // An older checkpoint, and, when the step is saved again, what the try before left: its name could not be synced.
  static void Prepare(const std::string& root, bool again) {
    ASSERT_TRUE(WriteTestCheckpoint(root, kOlderStep, Model(), 0.5, NewestEpoch(kEpoch - 1)).ok());
    if (again) ASSERT_TRUE(WriteTestCheckpoint(root, kStep, Model(), 0.5, NewestEpoch(kEpoch)).ok());
  }
  static ModelShape Model() {
    ModelShape model = TinyModel(true);
    model.num_layers = 1;
    return model;
  }

  static void ExpectWhole(const std::string& folder) {
    const auto manifest = ReadManifest(folder);
    ASSERT_TRUE(manifest.ok()) << manifest.status();
    EXPECT_TRUE(VerifyCheckpoint(folder, *manifest).ok()) << folder;
  }

  // What is published is whole, before and after rank 0 has removed what it wrote, and the next save of the step succeeds.
  static void ExpectNothingLost(const std::string& root, bool saved) {
    const std::string published = root + "/" + CheckpointFolderName(kStep, kEpoch);
    if (!saved) (void)RemoveTree(root + "/" + TemporaryCheckpointFolderName(kStep, kEpoch));
    ExpectWhole(root + "/" + CheckpointFolderName(kOlderStep, kEpoch - 1));
    if (saved || fs::exists(published)) ExpectWhole(published);
    const absl::Status next = Save(root);
    EXPECT_TRUE(next.ok()) << next;
    ExpectWhole(published);
  }

  void ExpectAsDocumented(const absl::Status& status, const WatchedCalls& undisturbed, const Refusals& refusals) const {
    const auto call = static_cast<size_t>(calls_.refuse);
    if (status.ok()) {
      EXPECT_TRUE(!MustBeDone(calls_.made[call], calls_.error) || calls_.made.size() > undisturbed.made.size())
          << "it was not done, and nothing was done in its place";
    } else {
      // What is not there, or not there any more, was there a moment ago.
      const bool gone = (calls_.error == ENOTDIR || calls_.error == EEXIST) && FaultOf(status) == Fault::kStorage;
      const bool looked = Message(status).find("not seen") != std::string::npos;
      EXPECT_TRUE(FaultOf(status) == refusals.fault || gone || looked) << FaultName(FaultOf(status));
    }
  }

  void RefuseEach(bool again) {
    const TempFolder before(kFolder), undisturbed(kFolder);
    Prepare(before.path(), again);
    Prepare(undisturbed.path(), again);
    ASSERT_TRUE(SaveWith(undisturbed.path(), -1, 0).ok());
    const WatchedCalls calls = calls_;
    ASSERT_GE(calls.made.size(), 50u) << "the calls of this program are not seen";
    for (int call = 0; call < static_cast<int>(calls.made.size()); ++call) {
      for (const Refusals& refusals : kRefusals) {
        for (const int error : refusals.errors) {
          const TempFolder root(kFolder);
          fs::copy(before.path(), root.path(), fs::copy_options::recursive);
          const absl::Status status = SaveWith(root.path(), call, error);
          SCOPED_TRACE(testing::Message() << "call " << call << ", " << calls_.made[call] << ", " << strerrorname_np(error)
                                          << ": " << status);
          ExpectAsDocumented(status, calls, refusals);
          ExpectNothingLost(root.path(), status.ok());
        }
      }
    }
  }

  static constexpr int64_t kEpoch = 3;
  WatchedCalls calls_;
};

TEST_F(SaveErrors, OfAStepThatIsSavedForTheFirstTime) { RefuseEach(false); }
TEST_F(SaveErrors, OfAStepThatIsSavedAgain) { RefuseEach(true); }

}  // namespace
}  // namespace motley
