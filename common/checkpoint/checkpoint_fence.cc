#include "common/checkpoint/checkpoint_fence.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/checkpoint_folders.h"
#include "common/checkpoint/checkpoint_manifest.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

constexpr int kMostNames = 1000;  // of one kind aside for one step and epoch
constexpr int kMostSwaps = 8;     // of one name while others take it

std::string ParentOf(const std::string& folder) { return fs::path(folder).parent_path().string(); }

// Unknown is taken for the newest: it is not ours to delete or to hide.
int64_t EpochOrNewest(const std::string& folder) {
  const absl::StatusOr<int64_t> epoch = EpochThatWrote(folder);
  return epoch.ok() ? *epoch : std::numeric_limits<int64_t>::max();
}

// ALREADY_EXISTS when `to` is there and not empty.
absl::Status Rename(const std::string& from, const std::string& to, const CheckpointFence& fence) {
  MOTLEY_RETURN_IF_ERROR(BeforeOperation(fence, absl::StrCat("rename ", from, " to ", to)));
  if (::rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  return FileError(errno, absl::StrCat("rename to ", to), from);
}

// UNIMPLEMENTED where the file system cannot; NOT_FOUND when one of the names is not there.
absl::Status Exchange(const std::string& a, const std::string& b, const CheckpointFence& fence) {
  if (!fence.can_exchange) return absl::UnimplementedError("no exchange");
  MOTLEY_RETURN_IF_ERROR(BeforeOperation(fence, absl::StrCat("exchange ", a, " and ", b)));
  if (::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0) return absl::OkStatus();
  if (errno == EINVAL || errno == ENOSYS || errno == ENOTSUP) return absl::UnimplementedError("no exchange");
  return FileError(errno, absl::StrCat("exchange with ", b), a);
}

// Returns the new name.
absl::StatusOr<std::string> MoveAside(const std::string& folder, int64_t step, const char* suffix, const CheckpointFence& fence) {
  const std::string name =
      absl::StrCat(ParentOf(folder), "/", TemporaryCheckpointFolderName(step, fence.epoch), std::string(suffix));
  absl::Status status;
  for (int i = 0; i < kMostNames; ++i) {
    const std::string aside = absl::StrCat(name, i);
    status = Rename(folder, aside, fence);
    if (status.ok()) return aside;
    if (!absl::IsAlreadyExists(status)) break;
  }
  return status;
}

// The manifest goes first: what is half deleted is no checkpoint.
absl::Status Remove(const std::string& aside, const CheckpointFence& fence) {
  MOTLEY_RETURN_IF_ERROR(BeforeOperation(fence, absl::StrCat("delete ", aside)));
  MOTLEY_RETURN_IF_ERROR(RemoveTree(absl::StrCat(aside, "/", kManifestName)));
  if (const absl::Status synced = SyncFolder(aside); !synced.ok() && !absl::IsNotFound(synced)) return synced;
  return RemoveTree(aside);
}

}  // namespace

absl::Status BeforeOperation(const CheckpointFence& fence, const std::string& operation) {
  return fence.before ? fence.before(operation) : absl::OkStatus();
}

absl::Status NewerEpochWrote(const std::string& folder, int64_t epoch) {
  return absl::FailedPreconditionError(
      absl::StrCat(folder, " was written by a generation newer than ", epoch, "; it stays as it is"));
}

absl::StatusOr<int64_t> EpochThatWrote(const std::string& folder) {
  const absl::StatusOr<CheckpointManifest> manifest = ReadManifest(folder);
  if (manifest.ok()) return manifest->epoch;
  if (absl::IsNotFound(manifest.status()) || absl::IsDataLoss(manifest.status())) return 0;
  return manifest.status();
}

absl::StatusOr<std::string> PlaceCheckpoint(const std::string& from, const std::string& to, const CheckpointFence& fence) {
  for (int attempt = 0; attempt < kMostSwaps; ++attempt) {
    absl::Status status = Rename(from, to, fence);
    if (status.ok()) return std::string();
    if (!absl::IsAlreadyExists(status)) return status;
    status = Exchange(from, to, fence);
    if (status.ok()) return from;
    if (absl::IsNotFound(status)) continue;  // `to` has gone, or `from`: the rename says which
    if (!absl::IsUnimplemented(status)) return status;
    // Two renames. What had the name stays beside it, whole, until the new name was synced.
    const absl::StatusOr<std::string> aside = MoveAside(to, StepOfFolder(fs::path(to).filename().string()), kAsideSuffix, fence);
    if (absl::IsNotFound(aside.status())) continue;
    if (!aside.ok()) return aside.status();
    status = Rename(from, to, fence);
    if (status.ok()) return *aside;
    if (absl::IsAlreadyExists(status)) break;
    (void)Rename(*aside, to, fence);  // the first error is the one to report
    return status;
  }
  return absl::FailedPreconditionError(absl::StrCat("cannot publish ", to, ": another writer takes the name again and again"));
}

absl::Status PutBackCheckpoint(const std::string& aside, const std::string& to, const CheckpointFence& fence) {
  std::string beside = aside;
  for (int swap = 0; swap < kMostSwaps; ++swap) {
    if (EpochOrNewest(to) >= EpochOrNewest(beside)) return absl::OkStatus();
    const absl::StatusOr<std::string> displaced = PlaceCheckpoint(beside, to, fence);
    if (absl::IsNotFound(displaced.status())) return absl::OkStatus();  // somebody else put it back
    if (!displaced.ok()) return displaced.status();
    MOTLEY_RETURN_IF_ERROR(SyncFolder(ParentOf(to)));
    if (displaced->empty()) return absl::OkStatus();
    beside = *displaced;  // what came out is older than what went in, unless it changed meanwhile
  }
  return absl::FailedPreconditionError(absl::StrCat("cannot put back ", to, ": another writer takes the name again and again"));
}

absl::Status DiscardCheckpoint(const std::string& folder, int64_t step, const char* suffix, const CheckpointFence& fence) {
  const absl::StatusOr<int64_t> before = EpochThatWrote(folder);
  if (!before.ok()) return before.status();
  if (*before > fence.epoch) return NewerEpochWrote(folder, fence.epoch);
  const absl::StatusOr<std::string> aside = MoveAside(folder, step, suffix, fence);
  if (absl::IsNotFound(aside.status())) return absl::OkStatus();
  if (!aside.ok()) return aside.status();
  // Another writer may have exchanged the folder since we looked: whatever is not what we meant gets its name back.
  const int64_t moved = EpochOrNewest(*aside);
  if (moved == *before || moved == 0) return Remove(*aside, fence);
  MOTLEY_RETURN_IF_ERROR(PutBackCheckpoint(*aside, absl::StrCat(ParentOf(folder), "/", CheckpointFolderName(step)), fence));
  return moved > fence.epoch ? NewerEpochWrote(folder, fence.epoch) : absl::OkStatus();
}

}  // namespace motley
