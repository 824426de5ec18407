#include "common/checkpoint/local_checkpoint.h"

#include <fcntl.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/base_prune.h"
#include "common/checkpoint/checkpoint_folders.h"
#include "common/checkpoint/checkpoint_manifest.h"
#include "common/checkpoint/checkpoint_owner.h"
#include "common/checkpoint/checkpoint_publish.h"
#include "common/checkpoint/mark_file.h"

namespace motley {

absl::StatusOr<std::string> PublishLocalCheckpoint(const std::string& root, const CheckpointManifest& manifest,
                                                   const std::string& text, const std::string& mark,
                                                   const CheckpointFence& fence) {
  const std::string name = CheckpointFolderName(manifest.step, manifest.epoch);
  const std::string temporary =
      absl::StrCat(root, "/", TemporaryCheckpointFolderName(manifest.step, manifest.epoch, fence.owner.uid));
  // Whose generation is the newest the mark says: a folder of a later one without its coordinator's mark is followed by nobody.
  MOTLEY_RETURN_IF_ERROR(BeforeOperation(fence, absl::StrCat("make ", temporary)));
  if (const absl::Status made = MakeOwnFolder(temporary); !made.ok()) return ExplainSave(made, root, 0);
  MOTLEY_RETURN_IF_ERROR(BeforeOperation(fence, absl::StrCat("write the manifest of ", name)));
  const absl::Status written = WriteFileDurably(absl::StrCat(temporary, "/", kManifestName), text);
  if (!written.ok()) return ExplainSave(written, temporary, static_cast<int64_t>(text.size()));
  MOTLEY_RETURN_IF_ERROR(BeforeOperation(fence, absl::StrCat("write the mark of ", name)));
  const absl::Status marked = WriteMark(temporary, mark);
  if (!marked.ok()) return ExplainSave(marked, temporary, static_cast<int64_t>(mark.size()));
  // A second name would be none of this checkpoint: whoever unites what the nodes have goes by names, too.
  return NameCheckpoint(root, manifest, temporary, SecondName::kNone, fence);
}

namespace {

// Empty: it is not to go.
absl::StatusOr<std::string> FolderOf(const std::string& root, const LocalDrop& drop, const CheckpointFence& fence) {
  if (drop.epoch > fence.epoch) return std::string();
  if (drop.manifest_digest.empty()) {
    if (drop.epoch == fence.epoch) return std::string();
    return absl::StrCat(root, "/", TemporaryCheckpointFolderName(drop.step, drop.epoch, fence.owner.uid));
  }
  const std::string folder = absl::StrCat(root, "/", CheckpointFolderName(drop.step, drop.epoch));
  const FileDescriptor at(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (at.get() < 0) return errno == ENOENT ? absl::StatusOr<std::string>("") : FileError(errno, "open the folder", folder);
  const absl::StatusOr<std::string> text = ReadManifestText(at, folder);
  if (absl::IsNotFound(text.status()) || absl::IsDataLoss(text.status())) return std::string();
  MOTLEY_RETURN_IF_ERROR(text.status());
  return ManifestDigest(*text) == drop.manifest_digest ? folder : std::string();
}

// Of a deletion that was cut off: its name is not what a save is written under.
bool IsTrash(const CheckpointFolder& folder, const CheckpointFence& fence) {
  return !folder.published && folder.epoch < fence.epoch && IsOwnUnfinished(fence.owner, folder) &&
         folder.name != TemporaryCheckpointFolderName(folder.step, folder.epoch, fence.owner.uid);
}

}  // namespace

absl::Status DropLocalCheckpoints(const std::string& root, const std::vector<LocalDrop>& drops, const CheckpointFence& fence) {
  absl::Status first_error;
  for (const LocalDrop& drop : drops) {
    const absl::StatusOr<std::string> folder = FolderOf(root, drop, fence);
    first_error.Update(folder.status());
    if (folder.ok() && !folder->empty()) first_error.Update(DiscardCheckpoint(*folder, drop.step, fence));
  }
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<CheckpointFolder> folders, ListCheckpointFolders(root));
  for (const CheckpointFolder& folder : folders) {
    if (!IsTrash(folder, fence)) continue;
    absl::Status deleted = BeforeOperation(fence, absl::StrCat("delete ", folder.path));
    if (deleted.ok()) deleted = RemoveTree(folder.path);
    first_error.Update(deleted);
  }
  first_error.Update(PruneBases(root, /*published=*/true, fence));  // after the checkpoints that named them
  return first_error;
}

}  // namespace motley
