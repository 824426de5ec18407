#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/base_prune.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/checkpoint_fence.h"
#include "common/checkpoint/checkpoint_folders.h"
#include "common/checkpoint/checkpoint_owner.h"

namespace motley {
namespace {

// Published folders to delete. What was not made by the job that prunes, or nobody knows by whom, is not its to count or to
// delete. FAILED_PRECONDITION: one is of a newer epoch of the job, so nothing here is ours to delete. `unread`: why what may have
// to go stays, the first of them.
absl::StatusOr<std::vector<CheckpointFolder>> Superseded(const std::vector<CheckpointFolder>& folders, int64_t keep_latest,
                                                         int64_t newest_step, const CheckpointFence& fence,
                                                         const std::set<std::string>& spared, absl::Status* unread) {
  std::vector<CheckpointFolder> doomed;
  // The steps of what counts go down from epoch to epoch: what is not below it was left behind when a newer epoch resumed, came
  // too late, or was saved again.
  int64_t kept = 0, counts_below = newest_step + 1;
  for (const CheckpointFolder& folder : folders) {
    if (!folder.published) continue;
    const absl::StatusOr<CheckpointManifest> manifest = ReadManifest(folder.path);
    if (!manifest.ok()) {
      const bool may_go = folder.epoch <= fence.epoch && (folder.step >= counts_below || kept >= keep_latest);
      const bool unknown = !absl::IsNotFound(manifest.status()) && !absl::IsDataLoss(manifest.status());
      if (may_go && unknown && unread->ok()) *unread = manifest.status();
      continue;
    }
    if (!IsOwn(fence.owner, *manifest)) continue;
    if (IsOfNewerEpoch(*manifest, fence)) return NewerEpochError(folder.path, *manifest, fence);
    if (IsRenamed(folder, *manifest)) continue;
    if (folder.step > newest_step && spared.contains(folder.path)) continue;
    if (folder.step >= counts_below || kept >= keep_latest) {
      doomed.push_back(folder);
    } else if (VerifyStructure(folder.path, *manifest).ok()) {  // nothing else can be resumed from
      ++kept;
      counts_below = folder.step;
    }
  }
  return doomed;
}

}  // namespace

absl::Status PruneCheckpoints(const std::string& root, int64_t keep_latest, int64_t newest_step, const CheckpointFence& fence,
                              const std::set<std::string>& spared) {
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<CheckpointFolder> folders, ListCheckpointFolders(root));
  absl::Status first_error;  // what stays because of its own error does not keep the rest
  std::vector<CheckpointFolder> doomed;
  if (keep_latest > 0) {
    MOTLEY_ASSIGN_OR_RETURN(doomed, Superseded(folders, keep_latest, newest_step, fence, spared, &first_error));
  }
  std::copy_if(folders.begin(), folders.end(), std::back_inserter(doomed), [&](const CheckpointFolder& folder) {
    return !folder.published && folder.epoch < fence.epoch && IsOwnUnfinished(fence.owner, folder);
  });
  for (const CheckpointFolder& folder : doomed) {
    MOTLEY_RETURN_IF_ERROR(fence.confirm(absl::StrCat("delete ", folder.name)));
    const absl::Status deleted = DiscardCheckpoint(folder.path, folder.step, fence);
    if (first_error.ok()) first_error = deleted;
  }
  const absl::Status bases = PruneBases(root, keep_latest > 0, fence);  // after the checkpoints that named them
  return first_error.ok() ? bases : first_error;
}

}  // namespace motley
