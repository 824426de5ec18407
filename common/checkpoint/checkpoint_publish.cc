#include "common/checkpoint/checkpoint_publish.h"

#include <sys/resource.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/fault.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_folders.h"
#include "common/checkpoint/checkpoint_owner.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

// What has the name may be going, or come, while it is taken.
constexpr int kMostNamings = 5;

// Of a file that may not grow so far: the disk has room for it.
std::string WhyTooLarge() {
  struct rlimit limit;
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return "its file system holds no file that large";
  return absl::StrCat("the worker's file size limit (ulimit -f, LimitFSIZE) is ", limit.rlim_cur, " bytes; raise it");
}

// Whether what has the name of a save is an earlier try of it, whose name could not be synced: it was never said to be saved.
absl::StatusOr<bool> IsEarlierTry(const std::string& published, const CheckpointFence& fence) {
  const absl::StatusOr<CheckpointManifest> manifest = ReadManifest(published);
  if (manifest.ok()) return IsOwn(fence.owner, *manifest) && manifest->epoch == fence.epoch;
  if (absl::IsNotFound(manifest.status()) || absl::IsDataLoss(manifest.status())) return false;
  return manifest.status();
}

// Two clusters that begin in one folder at once may save the same step of the same generation: a folder is never renamed onto one
// that holds something, so that whoever comes second sees it.
absl::StatusOr<std::string> TakeName(const std::string& first, const std::string& second, int64_t step,
                                     const std::string& temporary, const CheckpointFence& fence) {
  std::string published = first;
  absl::Status moved = MoveCheckpoint(temporary, published, fence);
  for (int tries = 0; tries < kMostNamings && absl::IsAlreadyExists(moved); ++tries) {
    if (FileExists(published)) {  // whatever has it may be gone again
      MOTLEY_ASSIGN_OR_RETURN(const bool own, IsEarlierTry(published, fence));
      if (!own && published == second) {
        return WithFault(absl::UnavailableError(absl::StrCat(published, " is there already, and is not this job's")),
                         Fault::kStorage);
      }
      if (own) MOTLEY_RETURN_IF_ERROR(DiscardCheckpoint(published, step, fence));
      if (!own) published = second;
    }
    moved = MoveCheckpoint(temporary, published, fence);
  }
  MOTLEY_RETURN_IF_ERROR(moved);
  return published;
}

}  // namespace

absl::Status ExplainSave(const absl::Status& status, const std::string& folder, int64_t bytes) {
  if (absl::IsNotFound(status)) {
    return WithFault(
        absl::UnavailableError(absl::StrCat(status.message(), "; is the disk or share that it lies on mounted here?")),
        Fault::kStorage);
  }
  const std::string reason(status.message());
  if (absl::IsOutOfRange(status)) {
    return WithFault(absl::OutOfRangeError(absl::StrCat("checkpoint folder ", folder, ": ", bytes,
                                                        " bytes to write: ", WhyTooLarge(), " (", reason, ")")),
                     FaultOf(status));
  }
  if (!absl::IsResourceExhausted(status)) return status;
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  const std::string free = error ? "" : absl::StrCat(", ", space.available, " bytes are free");
  const bool quota = absl::StrContains(reason, std::generic_category().message(EDQUOT));
  // The other ranks of the save write beside this one, and have ended or failed when it is asked.
  const bool has_room = !error && space.available > static_cast<uint64_t>(bytes);
  return WithFault(absl::ResourceExhaustedError(absl::StrCat("checkpoint folder ", folder,
                                                             quota      ? " takes no more (a quota): "
                                                             : has_room ? " is full when all ranks write there (or has a quota): "
                                                                        : " is full: ",
                                                             bytes, " bytes to write", free, " (", reason,
                                                             "); free space there or use another disk")),
                   FaultOf(status));
}

absl::StatusOr<std::string> NameCheckpoint(const std::string& root, const CheckpointManifest& manifest,
                                           const std::string& temporary, SecondName second, const CheckpointFence& fence) {
  if (const absl::Status synced = SyncFolder(temporary); !synced.ok()) return ExplainSave(synced, temporary, 0);
  const std::string name = CheckpointFolderName(manifest.step, manifest.epoch);
  const std::string other =
      second == SecondName::kNone ? name : CheckpointFolderName(manifest.step, manifest.epoch, fence.owner.uid);
  const absl::StatusOr<std::string> published =
      TakeName(absl::StrCat(root, "/", name), absl::StrCat(root, "/", other), manifest.step, temporary, fence);
  if (!published.ok()) return ExplainSave(published.status(), temporary, 0);
  MOTLEY_RETURN_IF_ERROR(BeforeOperation(fence, absl::StrCat("sync the name of ", name)));
  if (const absl::Status synced = SyncFolder(root); !synced.ok()) return ExplainSave(synced, *published, 0);
  return published;
}

}  // namespace motley
