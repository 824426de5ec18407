#include "common/checkpoint/local_checkpoint.h"

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_folders.h"
#include "common/checkpoint/checkpoint_manifest.h"
#include "common/checkpoint/checkpoint_publish.h"
#include "common/checkpoint/mark_file.h"

namespace motley {

absl::StatusOr<std::string> PublishLocalCheckpoint(const std::string& root, const CheckpointManifest& manifest,
                                                   const std::string& text, const std::string& mark,
                                                   const CheckpointFence& fence) {
  const std::string name = CheckpointFolderName(manifest.step, manifest.epoch);
  const std::string temporary =
      absl::StrCat(root, "/", TemporaryCheckpointFolderName(manifest.step, manifest.epoch, fence.owner.uid));
  if (const absl::Status newest = CheckIsNewest(root, fence); !newest.ok()) return ExplainSave(newest, root, 0);
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

}  // namespace motley
