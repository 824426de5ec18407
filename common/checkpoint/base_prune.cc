#include "common/checkpoint/base_prune.h"

#include <filesystem>
#include <optional>
#include <set>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/checkpoint_folders.h"
#include "common/weights/base_model.h"

namespace motley {
namespace {

// ".tmp-base-0123456789abcdef-gen-3-job-<uid>": what stands behind the base's name is as behind a checkpoint's step.
std::optional<CheckpointFolder> ParseUnfinished(const std::string& root, const std::string& name) {
  constexpr std::string_view kTemporary = ".tmp-";
  if (!name.starts_with(kTemporary)) return std::nullopt;
  const size_t end = name.find("-gen-");
  if (end == std::string::npos || !IsBaseName(std::string_view(name).substr(kTemporary.size(), end - kTemporary.size()))) {
    return std::nullopt;
  }
  auto folder = ParseCheckpointFolder(root, absl::StrCat(".tmp-step-0", name.substr(end)));
  if (folder) folder->path = absl::StrCat(root, "/", name), folder->name = name;
  return folder;
}

// Null: one cannot be read now.
absl::StatusOr<std::optional<std::set<std::string>>> NamedInCheckpoints(const std::string& root) {
  std::set<std::string> named;
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<CheckpointFolder> folders, ListCheckpointFolders(root));
  for (const CheckpointFolder& folder : folders) {
    if (!folder.published) continue;
    const absl::StatusOr<CheckpointManifest> manifest = ReadManifest(folder.path);
    if (manifest.ok()) named.insert(manifest->base);
    if (!manifest.ok() && !absl::IsNotFound(manifest.status())) return std::nullopt;
  }
  return named;
}

bool KeepsAlone(const std::string& root, const std::string& name, const JobUid& uid) {
  const absl::StatusOr<std::vector<JobUid>> keepers = KeepersOf(root, name);
  return keepers.ok() && keepers->size() == 1 && keepers->front() == uid;
}

// Under a name of the own epoch first: nobody reads half of it.
absl::Status Discard(const std::string& root, const std::string& name, const CheckpointFence& fence) {
  MOTLEY_RETURN_IF_ERROR(fence.confirm(absl::StrCat("delete ", name)));
  const std::string trash = absl::StrCat(root, "/", UnfinishedBaseName(name, fence.epoch, fence.owner.uid));
  MOTLEY_RETURN_IF_ERROR(RemoveTree(trash));
  const absl::Status moved = MoveCheckpoint(absl::StrCat(root, "/", name), trash, fence);
  if (absl::IsNotFound(moved)) return absl::OkStatus();
  MOTLEY_RETURN_IF_ERROR(moved);
  MOTLEY_RETURN_IF_ERROR(BeforeOperation(fence, absl::StrCat("delete ", trash)));
  return RemoveTree(trash);
}

}  // namespace

absl::Status PruneBases(const std::string& root, bool published, const CheckpointFence& fence) {
  std::vector<CheckpointFolder> unfinished;
  std::vector<std::string> bases;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(root, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    auto folder = ParseUnfinished(root, name);
    if (folder && folder->epoch < fence.epoch && IsOwnUnfinished(fence.owner, *folder)) unfinished.push_back(*std::move(folder));
    if (published && IsBaseName(name) && KeepsAlone(root, name, fence.owner.uid)) bases.push_back(name);
  }
  if (error) return FileError(error.value(), "list the checkpoint folder", root);
  absl::Status first_error;
  for (const CheckpointFolder& folder : unfinished) {
    MOTLEY_RETURN_IF_ERROR(fence.confirm(absl::StrCat("delete ", folder.name)));
    absl::Status deleted = BeforeOperation(fence, absl::StrCat("delete ", folder.path));
    if (deleted.ok()) deleted = RemoveTree(folder.path);
    if (first_error.ok()) first_error = deleted;
  }
  if (bases.empty()) return first_error;
  MOTLEY_ASSIGN_OR_RETURN(const auto named, NamedInCheckpoints(root));
  for (const std::string& name : bases) {
    if (!named || named->contains(name)) continue;
    const absl::Status deleted = Discard(root, name, fence);
    if (first_error.ok()) first_error = deleted;
  }
  return first_error;
}

}  // namespace motley
