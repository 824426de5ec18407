#include "common/checkpoint/checkpoint_fence.h"

#include <stdio.h>

#include <cerrno>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/checkpoint_folders.h"

namespace motley {

absl::Status BeforeOperation(const CheckpointFence& fence, const std::string& operation) {
  return fence.before ? fence.before(operation) : absl::OkStatus();
}

bool IsOfNewerEpoch(const CheckpointManifest& manifest, const CheckpointFence& fence) {
  return IsOwn(fence.owner, manifest) && manifest.epoch > fence.epoch && manifest.epoch < kFirstEpochNobodyGives;
}

absl::Status NewerEpochError(const std::string& folder, const CheckpointManifest& manifest, const CheckpointFence& fence) {
  return absl::FailedPreconditionError(absl::StrCat(
      folder, " was written by generation ", manifest.epoch, " of ", MakerOf(manifest), ", newer than generation ", fence.epoch,
      ", which writes here: another coordinator trains this job, from the same store or a backup of it; stop one of the two"));
}

absl::Status CheckIsNewest(const std::string& root, const CheckpointFence& fence) {
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<CheckpointFolder> folders, ListCheckpointFolders(root));
  for (const CheckpointFolder& folder : folders) {
    if (folder.epoch <= fence.epoch) break;  // the newest come first
    if (!folder.published) continue;
    const absl::StatusOr<CheckpointManifest> manifest = ReadManifest(folder.path);
    if (manifest.ok() && IsOfNewerEpoch(*manifest, fence)) return NewerEpochError(folder.path, *manifest, fence);
  }
  return absl::OkStatus();
}

absl::Status MoveCheckpoint(const std::string& from, const std::string& to, const CheckpointFence& fence) {
  MOTLEY_RETURN_IF_ERROR(BeforeOperation(fence, absl::StrCat("rename ", from, " to ", to)));
  if (::rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  const int why = errno;  // read before the text is made, which may change it
  return FileError(why, absl::StrCat("rename to ", to), from);
}

absl::Status DiscardCheckpoint(const std::string& folder, int64_t step, const CheckpointFence& fence) {
  const std::string root = std::filesystem::path(folder).parent_path().string();
  const std::string trash = absl::StrCat(root, "/", TemporaryCheckpointFolderName(step, fence.epoch, fence.owner.uid), ".trash");
  MOTLEY_RETURN_IF_ERROR(RemoveTree(trash));  // of a deletion that did not come to its end
  const absl::Status moved = MoveCheckpoint(folder, trash, fence);
  if (absl::IsNotFound(moved)) return absl::OkStatus();
  MOTLEY_RETURN_IF_ERROR(moved);
  MOTLEY_RETURN_IF_ERROR(SyncFolder(root));  // a power cut leaves no half of it under its name either
  MOTLEY_RETURN_IF_ERROR(BeforeOperation(fence, absl::StrCat("delete ", trash)));
  return RemoveTree(trash);
}

}  // namespace motley
