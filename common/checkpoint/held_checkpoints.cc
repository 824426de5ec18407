#include "common/checkpoint/held_checkpoints.h"

#include <fcntl.h>

#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/dtype.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/checkpoint_folders.h"
#include "common/checkpoint/checkpoint_manifest.h"
#include "common/checkpoint/checkpoint_owner.h"
#include "common/checkpoint/mark_file.h"

namespace motley {
namespace {

// Null: there is no such folder, or what has the name is none, or a link to one.
absl::StatusOr<std::optional<FileDescriptor>> OpenHeldFolder(const std::string& path, int flags) {
  FileDescriptor at(::open(path.c_str(), flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (at.get() >= 0) return std::optional<FileDescriptor>(std::move(at));
  if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP) return std::optional<FileDescriptor>();
  return FileError(errno, "open the folder", path);
}

// Of a regular file; else null.
absl::StatusOr<std::optional<int64_t>> BytesOfFile(const FileDescriptor& at, const std::string& name, const std::string& folder) {
  const absl::StatusOr<int64_t> bytes = FileBytesIn(at, name, absl::StrCat(folder, "/", name));
  if (bytes.ok()) return std::optional<int64_t>(*bytes);
  if (absl::IsNotFound(bytes.status()) || absl::IsInvalidArgument(bytes.status())) return std::optional<int64_t>();
  return bytes.status();
}

// Null: the manifest is missing or damaged, of a newer format, or not this job's, or was copied or renamed.
absl::StatusOr<std::optional<HeldCheckpoint>> LookAtPublished(const CheckpointFolder& folder, const JobUid& uid) {
  const std::optional<HeldCheckpoint> none;
  MOTLEY_ASSIGN_OR_RETURN(const std::optional<FileDescriptor> at, OpenHeldFolder(folder.path, O_PATH));
  if (!at) return none;
  const absl::StatusOr<std::string> text = ReadManifestText(*at, folder.path);
  if (absl::IsNotFound(text.status()) || absl::IsDataLoss(text.status())) return none;
  MOTLEY_RETURN_IF_ERROR(text.status());
  const absl::StatusOr<CheckpointManifest> manifest = ManifestFromJson(*text, folder.path);
  if (!manifest.ok() || !manifest->is_local() || manifest->job_uid != uid || IsRenamed(folder, *manifest)) return none;
  HeldCheckpoint held = {.name = folder.name,
                         .manifest_digest = ManifestDigest(*text),
                         .epoch = Epoch(manifest->epoch),
                         .step = manifest->step,
                         .model = ToHfConfig(manifest->model),
                         .dtype = std::string(DTypeName(manifest->dtype)),
                         .data_digest = manifest->data_digest,
                         .seed = manifest->seed};
  MOTLEY_ASSIGN_OR_RETURN(held.mark, ReadMark(*at, folder.path));
  for (const CheckpointFile& file : manifest->files) {
    if (file.name.find('/') != std::string::npos) return none;  // it leads out of the folder
    MOTLEY_ASSIGN_OR_RETURN(const std::optional<int64_t> bytes, BytesOfFile(*at, file.name, folder.path));
    held.files.push_back({.name = file.name, .bytes = file.bytes, .here = bytes == file.bytes, .node = file.node});
  }
  return std::optional(std::move(held));
}

// "rank-0.bin", as ranks call their files.
bool IsRankFile(std::string_view name) {
  constexpr std::string_view kBegin = "rank-", kEnd = ".bin";
  if (!name.starts_with(kBegin) || !name.ends_with(kEnd) || name.size() <= kBegin.size() + kEnd.size()) return false;
  name.remove_prefix(kBegin.size());
  name.remove_suffix(kEnd.size());
  return name.find_first_not_of("0123456789") == std::string_view::npos;
}

absl::StatusOr<UnpublishedFiles> LookAtUnpublished(const CheckpointFolder& folder) {
  UnpublishedFiles found = {.epoch = Epoch(folder.epoch), .step = folder.step};
  MOTLEY_ASSIGN_OR_RETURN(std::optional<FileDescriptor> at, OpenHeldFolder(folder.path, O_RDONLY));
  if (!at) return found;
  FileDescriptor entries(::openat(at->get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (entries.get() < 0) return FileError(errno, "open the folder", folder.path);
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(std::move(entries), folder.path));
  for (const std::string& name : names) {
    if (!IsRankFile(name)) continue;
    MOTLEY_ASSIGN_OR_RETURN(const std::optional<int64_t> bytes, BytesOfFile(*at, name, folder.path));
    if (bytes) found.files.push_back({.name = name, .bytes = *bytes, .here = true});
  }
  return found;
}

absl::StatusOr<HeldCheckpoints> LookIn(const std::vector<CheckpointFolder>& folders, const JobUid& uid) {
  HeldCheckpoints held;
  for (const CheckpointFolder& folder : folders) {  // the newest first
    if (folder.name == CheckpointFolderName(folder.step, folder.epoch)) {
      if (held.checkpoints.size() == kMostHeldCheckpoints) continue;
      MOTLEY_ASSIGN_OR_RETURN(std::optional<HeldCheckpoint> one, LookAtPublished(folder, uid));
      if (one) held.checkpoints.push_back(*std::move(one));
    } else if (folder.name == TemporaryCheckpointFolderName(folder.step, folder.epoch, uid)) {
      MOTLEY_ASSIGN_OR_RETURN(UnpublishedFiles files, LookAtUnpublished(folder));
      if (!files.files.empty()) held.unpublished.push_back(std::move(files));
    }
  }
  return held;
}

}  // namespace

absl::StatusOr<HeldCheckpoints> LookForHeldCheckpoints(const std::string& root, const JobUid& uid) {
  const absl::StatusOr<std::vector<CheckpointFolder>> folders = ListCheckpointFolders(root);
  if (absl::IsNotFound(folders.status())) return HeldCheckpoints();
  MOTLEY_RETURN_IF_ERROR(folders.status());
  return LookIn(*folders, uid);
}

}  // namespace motley
