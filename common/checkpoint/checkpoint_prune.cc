#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/base_prune.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/checkpoint_fence.h"
#include "common/checkpoint/checkpoint_folders.h"
#include "common/checkpoint/checkpoint_owner.h"
#include "common/checkpoint/local_checkpoint.h"
#include "common/checkpoint/mark_file.h"

namespace motley {
namespace {

// What is left to say of a readable checkpoint of the own job and its own name.
struct PruneKind {
  // False: it stays, and counts for nothing.
  std::function<absl::StatusOr<bool>(const CheckpointFolder&, const CheckpointManifest&)> may_go;
  // Whether the job can go on from it: only such ones are among the newest.
  std::function<bool(const CheckpointFolder&, const CheckpointManifest&)> counts;
};

struct Pruning {
  int64_t keep_latest, newest_step;
  const CheckpointFence& fence;
  const PruneKind& kind;
};

// Published folders to delete. What was not made by the job that prunes, or nobody knows by whom, is not its to count or to
// delete. FAILED_PRECONDITION: one is of a newer epoch of the job, so nothing here is ours to delete. `unread`: why what may have
// to go stays, the first of them.
absl::StatusOr<std::vector<CheckpointFolder>> Superseded(const std::vector<CheckpointFolder>& folders, const Pruning& pruning,
                                                         absl::Status* unread) {
  std::vector<CheckpointFolder> doomed;
  // The steps of what counts go down from epoch to epoch: what is not below it was left behind when a newer epoch resumed, came
  // too late, or was saved again.
  int64_t kept = 0, counts_below = pruning.newest_step + 1;
  for (const CheckpointFolder& folder : folders) {
    if (!folder.published) continue;
    const bool is_old = folder.step >= counts_below || kept >= pruning.keep_latest;
    const auto stays_unread = [&](const absl::Status& why) {
      if (is_old && folder.epoch <= pruning.fence.epoch && unread->ok()) *unread = why;
    };
    const absl::StatusOr<CheckpointManifest> manifest = ReadManifest(folder.path);
    if (!manifest.ok()) {
      if (!absl::IsNotFound(manifest.status()) && !absl::IsDataLoss(manifest.status())) stays_unread(manifest.status());
      continue;
    }
    if (!IsOwn(pruning.fence.owner, *manifest)) continue;
    if (IsOfNewerEpoch(*manifest, pruning.fence)) return NewerEpochError(folder.path, *manifest, pruning.fence);
    if (IsRenamed(folder, *manifest)) continue;
    const absl::StatusOr<bool> may_go = pruning.kind.may_go(folder, *manifest);
    if (!may_go.ok()) stays_unread(may_go.status());
    if (!may_go.ok() || !*may_go) continue;
    if (is_old) {
      doomed.push_back(folder);
    } else if (pruning.kind.counts(folder, *manifest)) {
      ++kept;
      counts_below = folder.step;
    }
  }
  return doomed;
}

absl::Status PruneBy(const std::string& root, const Pruning& pruning) {
  const CheckpointFence& fence = pruning.fence;
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<CheckpointFolder> folders, ListCheckpointFolders(root));
  absl::Status first_error;  // what stays because of its own error does not keep the rest
  std::vector<CheckpointFolder> doomed;
  if (pruning.keep_latest > 0) {
    MOTLEY_ASSIGN_OR_RETURN(doomed, Superseded(folders, pruning, &first_error));
  }
  std::copy_if(folders.begin(), folders.end(), std::back_inserter(doomed), [&](const CheckpointFolder& folder) {
    return !folder.published && folder.epoch < fence.epoch && IsOwnUnfinished(fence.owner, folder);
  });
  for (const CheckpointFolder& folder : doomed) {
    MOTLEY_RETURN_IF_ERROR(fence.confirm(absl::StrCat("delete ", folder.name)));
    const absl::Status deleted = DiscardCheckpoint(folder.path, folder.step, fence);
    if (first_error.ok()) first_error = deleted;
  }
  const absl::Status bases = PruneBases(root, pruning.keep_latest > 0, fence);  // after the checkpoints that named them
  return first_error.ok() ? bases : first_error;
}

// Its files may be anywhere; what proves that it was published is its mark. Other names are none of those that are looked for
// (LookForHeldCheckpoints).
absl::StatusOr<bool> IsMarkedLocal(const CheckpointFolder& folder, const CheckpointManifest& manifest) {
  if (!manifest.is_local() || folder.name != CheckpointFolderName(folder.step, folder.epoch)) return false;
  const FileDescriptor at(::open(folder.path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (at.get() < 0) return FileError(errno, "open the folder", folder.path);
  MOTLEY_ASSIGN_OR_RETURN(const std::string mark, ReadMark(at, folder.path));
  return !mark.empty();
}

}  // namespace

absl::Status PruneCheckpoints(const std::string& root, int64_t keep_latest, int64_t newest_step, const CheckpointFence& fence,
                              const std::set<std::string>& spared) {
  const PruneKind kind = {
      .may_go = [&](const CheckpointFolder& folder,
                    const CheckpointManifest&) { return folder.step <= newest_step || !spared.contains(folder.path); },
      .counts = [](const CheckpointFolder& folder,
                   const CheckpointManifest& manifest) { return VerifyStructure(folder.path, manifest).ok(); }};
  return PruneBy(root, {keep_latest, newest_step, fence, kind});
}

absl::Status PruneLocalCheckpoints(const std::string& root, int64_t keep_latest, int64_t newest_step,
                                   const CheckpointFence& fence) {
  const PruneKind kind = {.may_go = IsMarkedLocal,
                          .counts = [](const CheckpointFolder&, const CheckpointManifest&) { return true; }};
  return PruneBy(root, {keep_latest, newest_step, fence, kind});
}

}  // namespace motley
