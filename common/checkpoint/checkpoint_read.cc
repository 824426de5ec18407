#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/fault.h"
#include "common/base/files.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/checkpoint_blocks.h"
#include "common/checkpoint/checkpoint_manifest.h"
#include "common/checkpoint/checkpoint_owner.h"
#include "common/checkpoint/mark_file.h"
#include "common/checkpoint/other_weights.h"
#include "common/model/parameters.h"

namespace motley {
namespace {

constexpr int64_t kLargestManifestBytes = int64_t{256} << 20;  // a checkpoint of 10 TB
constexpr int64_t kSmallManifestBytes = int64_t{4} << 20;

std::string PathOf(const std::string& folder, const CheckpointFile& file) { return absl::StrCat(folder, "/", file.name); }

// A manifest says where the pieces of the files beside it are, and what digests their blocks have: that is less than the files.
// Files of a local one may lie on other nodes.
int64_t MostManifestBytes(const std::string& folder) {
  if (FileBytes(absl::StrCat(folder, "/", kMarkName)).ok()) return kLargestManifestBytes;
  int64_t bytes = kSmallManifestBytes;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator() && bytes < kLargestManifestBytes; entry.increment(error)) {
    const absl::StatusOr<int64_t> file = FileBytes(entry->path().string());
    if (file.ok() && entry->path().filename() != kManifestName) bytes += std::min(*file, kLargestManifestBytes);
  }
  return std::min(bytes, kLargestManifestBytes);
}

// A file's name must not lead out of the folder, and its pieces must lie inside the file.
absl::Status VerifyPieces(const std::string& folder, const CheckpointFile& file, int64_t element_bytes, int64_t num_units) {
  if (file.name.empty() || file.name.find('/') != std::string::npos) {
    return absl::DataLossError(absl::StrCat(folder, ": the manifest names a file '", file.name, "' outside the folder"));
  }
  for (const CheckpointPiece& piece : file.pieces) {
    const bool inside = piece.unit >= 0 && piece.unit < num_units && piece.begin >= 0 && piece.begin <= piece.end &&
                        piece.file_offset >= 0 && piece.file_offset <= file.bytes &&
                        piece.end - piece.begin <= (file.bytes - piece.file_offset) / element_bytes;
    if (!inside)
      return absl::DataLossError(absl::StrCat(PathOf(folder, file), ": a piece of unit ", piece.unit, " lies outside the file"));
  }
  return absl::OkStatus();
}

// Only bytes: what they are is for their readers.
absl::Status VerifySize(const FileDescriptor& at, const std::string& folder, const CheckpointFile& file) {
  const std::string path = PathOf(folder, file);
  const absl::StatusOr<int64_t> bytes = FileBytesIn(at, file.name, path);
  if (absl::IsNotFound(bytes.status())) return absl::NotFoundError(absl::StrCat(path, " is missing"));
  // A link may lead out of the folders that jobs may use.
  if (absl::IsInvalidArgument(bytes.status())) return absl::DataLossError(bytes.status().message());
  if (!bytes.ok() || *bytes == file.bytes) return bytes.status();
  return absl::DataLossError(
      absl::StrCat(path, *bytes < file.bytes ? " is cut off" : " is too long", ": ", *bytes, " bytes instead of ", file.bytes));
}

absl::Status VerifyContents(const FileDescriptor& at, const std::string& folder, const CheckpointFile& file) {
  const std::string path = PathOf(folder, file);
  MOTLEY_ASSIGN_OR_RETURN(const FileDescriptor opened, OpenForReadIn(at, file.name, path));
  Sha256 sha;
  BlockDigests digests;
  MOTLEY_RETURN_IF_ERROR(ForEachBlock(opened, path, [&](std::string_view block) {
    file.digest.empty() ? digests.Update(block.data(), static_cast<int64_t>(block.size()))
                        : sha.Update(block.data(), block.size());
    return absl::OkStatus();
  }));
  const bool same = file.digest.empty() ? digests.Finish() == file.blocks : sha.Hex() == file.digest;
  return same ? absl::OkStatus() : absl::DataLossError(absl::StrCat(path, " was altered: its digest does not match"));
}

// Every element of every unit's three arrays exactly once.
absl::Status VerifyCoverage(const std::string& folder, const CheckpointManifest& manifest) {
  using Range = std::pair<int64_t, int64_t>;
  std::map<std::pair<int, int>, std::vector<Range>> ranges;
  for (const CheckpointFile& file : manifest.files) {
    for (const CheckpointPiece& piece : file.pieces) {
      if (piece.begin < piece.end) ranges[{piece.unit, static_cast<int>(piece.tensor)}].push_back({piece.begin, piece.end});
    }
  }
  const std::vector<UnitSpec> units = ParameterLayout(manifest.model);
  for (int unit = 0; unit < static_cast<int>(units.size()); ++unit) {
    for (int tensor = 0; tensor < kNumStateTensors; ++tensor) {
      std::vector<Range>& found = ranges[{unit, tensor}];
      std::sort(found.begin(), found.end());
      int64_t next = 0;
      for (const auto& [begin, end] : found) {
        if (begin != next) break;
        next = end;
      }
      if (next != units[unit].num_elements || (!found.empty() && found.back().second != next)) {
        return absl::DataLossError(absl::StrCat(folder, "/", kManifestName, ": unit ", unit, " is not covered once: element ",
                                                next, " of ", units[unit].num_elements, " is missing or doubled"));
      }
    }
  }
  return absl::OkStatus();
}

std::string ManifestPath(const std::string& folder) { return absl::StrCat(folder, "/", kManifestName); }

// The folder as whoever names it means it: its name may be a link.
absl::StatusOr<FileDescriptor> OpenNamed(const std::string& folder) {
  FileDescriptor at(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (at.get() < 0) return FileError(errno, "read", ManifestPath(folder));
  return at;
}

// One of those in an open root, where a link is somebody's who would lead the reading elsewhere.
absl::StatusOr<FileDescriptor> OpenStepFolder(const FileDescriptor& root, const CheckpointFolder& folder) {
  FileDescriptor at(::openat(root.get(), folder.name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (at.get() >= 0) return at;
  if (errno == ENOTDIR || errno == ELOOP)
    return absl::DataLossError(absl::StrCat(folder.path, " is no folder, or a link to one"));
  return FileError(errno, "read", ManifestPath(folder.path));
}

// A missing or cut file is damage; one that cannot be read now says nothing about what is in it.
bool ProvesDamage(const absl::Status& status) { return absl::IsNotFound(status) || absl::IsDataLoss(status); }

// People call a folder what they like; what has a checkpoint's name is that one. Behind the last '/' there may be nothing.
absl::Status CheckNameOf(const std::string& given, const CheckpointManifest& manifest) {
  std::filesystem::path path = std::filesystem::path(given).lexically_normal();
  if (path.filename().empty()) path = path.parent_path();
  const auto folder = ParseCheckpointFolder(path.parent_path().string(), path.filename().string());
  return folder ? CheckName(*folder, manifest) : absl::OkStatus();
}

}  // namespace

CheckpointFilter OnlyOf(CheckpointOwner owner) {
  return [owner = std::move(owner)](const CheckpointManifest& manifest, const std::string& folder) {
    if (IsOwn(owner, manifest)) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat("checkpoint ", folder, " was made by ", MakerOf(manifest),
                                                      ", and not by job '", owner.job.value(), "'",
                                                      owner.uid.empty() ? "" : absl::StrCat(" (uid ", owner.uid.value(), ")")));
  };
}

absl::StatusOr<CheckpointManifest> ReadManifest(const std::string& folder) {
  MOTLEY_ASSIGN_OR_RETURN(const FileDescriptor at, OpenNamed(folder));
  return ReadManifest(at, folder);
}

absl::StatusOr<std::string> ReadManifestText(const FileDescriptor& at, const std::string& folder) {
  const std::string path = ManifestPath(folder);
  const absl::StatusOr<FileDescriptor> file = OpenForReadIn(at, kManifestName, path);
  const absl::StatusOr<int64_t> bytes = FileBytesIn(at, kManifestName, path);
  const bool small = !bytes.ok() || *bytes <= kSmallManifestBytes;
  const int64_t most_bytes = small ? kSmallManifestBytes : MostManifestBytes(folder);
  absl::StatusOr<std::string> text = file.ok() ? ReadSmallFile(*file, path, most_bytes) : file.status();
  // Too large, or no file at all: no writer of ours left it so.
  if (absl::IsInvalidArgument(text.status())) return absl::DataLossError(text.status().message());
  return text;
}

absl::StatusOr<CheckpointManifest> ReadManifest(const FileDescriptor& at, const std::string& folder) {
  MOTLEY_ASSIGN_OR_RETURN(const std::string text, ReadManifestText(at, folder));
  return ManifestFromJson(text, ManifestPath(folder));
}

absl::Status VerifyStructure(const std::string& folder, const CheckpointManifest& manifest) {
  MOTLEY_ASSIGN_OR_RETURN(const FileDescriptor at, OpenNamed(folder));
  return VerifyStructure(at, folder, manifest);
}

absl::Status VerifyStructure(const FileDescriptor& at, const std::string& folder, const CheckpointManifest& manifest) {
  for (const CheckpointFile& file : manifest.files) {
    MOTLEY_RETURN_IF_ERROR(VerifyPieces(folder, file, SizeOfBytes(manifest.dtype), NumUnits(manifest.model)));
  }
  MOTLEY_RETURN_IF_ERROR(VerifyCoverage(folder, manifest));
  for (const CheckpointFile& file : manifest.files) MOTLEY_RETURN_IF_ERROR(VerifySize(at, folder, file));
  return absl::OkStatus();
}

absl::Status VerifyCheckpoint(const std::string& folder, const CheckpointManifest& manifest) {
  const absl::StatusOr<FileDescriptor> at = OpenNamed(folder);
  if (absl::IsNotFound(at.status())) return absl::DataLossError(at.status().message());
  MOTLEY_RETURN_IF_ERROR(at.status());
  return VerifyCheckpoint(*at, folder, manifest);
}

absl::Status VerifyCheckpoint(const FileDescriptor& at, const std::string& folder, const CheckpointManifest& manifest) {
  const absl::Status structure = VerifyStructure(at, folder, manifest);
  if (absl::IsNotFound(structure)) return absl::DataLossError(structure.message());
  MOTLEY_RETURN_IF_ERROR(structure);
  for (const CheckpointFile& file : manifest.files) MOTLEY_RETURN_IF_ERROR(VerifyContents(at, folder, file));
  return absl::OkStatus();
}

absl::StatusOr<FoundCheckpoint> FindNewestCheckpoint(const std::string& root, const std::set<std::string>& left_out,
                                                     const CheckpointFilter& wanted, std::vector<std::string>* not_one) {
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<CheckpointFolder> folders, ListCheckpointFolders(root));
  const FileDescriptor at_root(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (at_root.get() < 0) return FileError(errno, "list the checkpoint folder", root);
  FoundCheckpoint result;
  absl::Status unwanted, renamed;  // of each the newest
  bool damaged = false;
  for (const CheckpointFolder& folder : folders) {
    if (!folder.published) continue;
    const absl::StatusOr<FileDescriptor> at = OpenStepFolder(at_root, folder);
    absl::StatusOr<CheckpointManifest> manifest = at.ok() ? ReadManifest(*at, folder.path) : at.status();
    absl::Status status = manifest.status();
    // First: what is wrong with another job's files, which it may be deleting now, is nobody's here.
    if (manifest.ok()) {
      const absl::Status refused = wanted ? wanted(*manifest, folder.path) : absl::OkStatus();
      if (!refused.ok() && FaultOf(refused) == Fault::kStorage) return refused;
      status = refused.ok() ? CheckName(folder, *manifest) : refused;
      if (!status.ok()) {
        absl::Status& newest = refused.ok() ? renamed : unwanted;
        if (newest.ok()) newest = status;
        result.skipped.push_back(std::string(status.message()));
        continue;
      }
    }
    if (status.ok()) status = VerifyStructure(*at, folder.path, *manifest);
    if (status.ok() && left_out.contains(folder.path)) {
      status = absl::DataLossError(absl::StrCat(folder.path, " is damaged: a rank that read it found out"));
    }
    if (status.ok()) {
      result.folder = folder.path;
      result.manifest = *std::move(manifest);
      return result;
    }
    if (!ProvesDamage(status)) return status;
    damaged |= !absl::IsNotFound(manifest.status());
    if (!left_out.contains(folder.path)) result.unjudged.push_back(folder.path);
    result.skipped.push_back(std::string(status.message()));
  }
  if (!damaged && !renamed.ok()) return renamed;
  if (!damaged && !unwanted.ok()) return unwanted;
  if (!damaged) {
    const std::string but = result.skipped.empty() ? "" : absl::StrCat(": ", absl::StrJoin(result.skipped, "; "));
    if (not_one != nullptr) *not_one = std::move(result.skipped);
    return absl::NotFoundError(absl::StrCat("no checkpoint in ", root, but));
  }
  return absl::DataLossError(absl::StrCat("no checkpoint in ", root, " verifies: ", absl::StrJoin(result.skipped, "; "),
                                          "; restore one, or remove the folder to begin again"));
}

absl::StatusOr<FoundCheckpoint> FindCheckpointAt(const std::string& folder, const std::set<std::string>& left_out,
                                                 const CheckpointFilter& wanted) {
  absl::StatusOr<CheckpointManifest> manifest = ReadManifest(folder);
  if (absl::IsNotFound(manifest.status())) {
    absl::StatusOr<FoundCheckpoint> newest = FindNewestCheckpoint(folder, left_out, wanted);
    if (!absl::IsNotFound(newest.status())) return newest;
    const std::string other = OtherWeightsIn(folder);
    return other.empty() ? newest : absl::NotFoundError(other);
  }
  MOTLEY_RETURN_IF_ERROR(manifest.status());
  if (wanted) MOTLEY_RETURN_IF_ERROR(wanted(*manifest, folder));
  MOTLEY_RETURN_IF_ERROR(CheckNameOf(folder, *manifest));
  MOTLEY_RETURN_IF_ERROR(VerifyStructure(folder, *manifest));
  if (left_out.contains(folder)) return absl::DataLossError(absl::StrCat(folder, " is damaged"));
  return FoundCheckpoint{folder, *std::move(manifest), {}, {}};
}

}  // namespace motley
