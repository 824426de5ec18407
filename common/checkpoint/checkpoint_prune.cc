#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/checkpoint_fence.h"
#include "common/checkpoint/checkpoint_folders.h"

namespace motley {
namespace {

// A folder that an older epoch left: what was published once gets its name back, unless a newer one has it; the rest goes.
absl::Status Settle(const std::string& root, const CheckpointFolder& folder, const CheckpointFence& fence) {
  MOTLEY_RETURN_IF_ERROR(fence.confirm(absl::StrCat("delete ", folder.name)));
  MOTLEY_ASSIGN_OR_RETURN(const int64_t epoch, EpochThatWrote(folder.path));
  const bool was_published = epoch > 0 && (folder.aside() || (folder.suffix.empty() && epoch != folder.epoch));
  if (was_published) {
    const std::string published = absl::StrCat(root, "/", CheckpointFolderName(folder.step));
    MOTLEY_RETURN_IF_ERROR(PutBackCheckpoint(folder.path, published, fence));
  }
  return DiscardCheckpoint(folder.path, folder.step, kTrashSuffix, fence);
}

// The job whose checkpoint has just been published; empty: it cannot be told.
std::string OwnerOf(const std::vector<CheckpointFolder>& folders, int64_t newest_step) {
  for (const CheckpointFolder& folder : folders) {
    if (!folder.published || folder.step != newest_step) continue;
    const absl::StatusOr<CheckpointManifest> manifest = ReadManifest(folder.path);
    return manifest.ok() ? manifest->job : "";
  }
  return "";
}

// Published folders to delete. What was not made by the job that prunes is not its to count or to delete. FAILED_PRECONDITION:
// one is of a newer epoch, so nothing here is ours to delete.
absl::StatusOr<std::vector<CheckpointFolder>> Superseded(const std::vector<CheckpointFolder>& folders, int64_t keep_latest,
                                                         int64_t newest_step, const CheckpointFence& fence,
                                                         const std::set<std::string>& spared) {
  std::vector<CheckpointFolder> doomed;
  const std::string owner = OwnerOf(folders, newest_step);
  int64_t kept = 0;
  for (const CheckpointFolder& folder : folders) {
    if (!folder.published) continue;
    const absl::StatusOr<CheckpointManifest> manifest = ReadManifest(folder.path);
    if (manifest.ok() && !owner.empty() && manifest->job != owner) continue;
    if (manifest.ok() && manifest->epoch > fence.epoch) return NewerEpochWrote(folder.path, fence.epoch);
    if (folder.step > newest_step && spared.contains(folder.path)) continue;
    if (folder.step > newest_step || kept >= keep_latest) {
      doomed.push_back(folder);
    } else if (manifest.ok() && VerifyStructure(folder.path, *manifest).ok()) {
      ++kept;  // nothing else can be resumed from
    }
  }
  return doomed;
}

}  // namespace

absl::Status PruneCheckpoints(const std::string& root, int64_t keep_latest, int64_t newest_step, const CheckpointFence& fence,
                              const std::set<std::string>& spared) {
  MOTLEY_ASSIGN_OR_RETURN(std::vector<CheckpointFolder> folders, ListCheckpointFolders(root));
  absl::Status first_error;
  // What stays because of its own error does not keep the rest; a newer epoch, or nobody to ask, ends it all.
  const auto over = [&](const absl::Status& status) {
    if (first_error.ok()) first_error = status;
    return absl::IsFailedPrecondition(status);
  };
  bool changed = false;
  for (const CheckpointFolder& folder : folders) {
    if (folder.published || folder.epoch >= fence.epoch) continue;
    changed = true;
    if (over(Settle(root, folder, fence))) return first_error;
  }
  if (keep_latest > 0) {
    MOTLEY_ASSIGN_OR_RETURN(folders, ListCheckpointFolders(root));
    MOTLEY_ASSIGN_OR_RETURN(const std::vector<CheckpointFolder> doomed,
                            Superseded(folders, keep_latest, newest_step, fence, spared));
    for (const CheckpointFolder& folder : doomed) {
      changed = true;
      MOTLEY_RETURN_IF_ERROR(fence.confirm(absl::StrCat("delete ", folder.name)));
      if (over(DiscardCheckpoint(folder.path, folder.step, kAsideSuffix, fence))) return first_error;
    }
  }
  return changed && first_error.ok() ? SyncFolder(root) : first_error;
}

}  // namespace motley
