#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/fault.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/checkpoint_blocks.h"
#include "common/checkpoint/checkpoint_fence.h"
#include "common/checkpoint/checkpoint_folders.h"
#include "common/checkpoint/checkpoint_look.h"
#include "common/checkpoint/checkpoint_manifest.h"
#include "common/checkpoint/checkpoint_owner.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

int64_t BytesOf(const PieceData& piece, DType dtype) { return (piece.end - piece.begin) * SizeOfBytes(dtype); }

// Returns the digests of its blocks. A file that cannot be finished is removed.
absl::StatusOr<std::vector<std::string>> WritePieces(const std::string& path, DType dtype, const std::vector<PieceData>& pieces) {
  MOTLEY_ASSIGN_OR_RETURN(FileWriter writer, FileWriter::Create(path));
  BlockDigests digests;
  for (const PieceData& piece : pieces) {
    const int64_t bytes = BytesOf(piece, dtype);
    const void* const data = piece.data();
    digests.Update(data, bytes);
    MOTLEY_RETURN_IF_ERROR(writer.Write(data, bytes));
  }
  MOTLEY_RETURN_IF_ERROR(writer.Finish());
  return digests.Finish();
}

// Of a file that may not grow so far: the disk has room for it.
std::string WhyTooLarge() {
  struct rlimit limit;
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return "its file system holds no file that large";
  return absl::StrCat("the worker's file size limit (ulimit -f, LimitFSIZE) is ", limit.rlim_cur, " bytes; raise it");
}

// The same error with what the reader needs: folder, bytes wanted, bytes free. What was there a moment ago and is not now is a
// file system that went, not a wrong path.
absl::Status Explain(const absl::Status& status, const std::string& folder, int64_t bytes) {
  if (absl::IsNotFound(status)) {
    return WithFault(absl::UnavailableError(absl::StrCat(status.message(), "; is checkpoint.folder mounted here?")),
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
                                                             "); free space there or choose another checkpoint.folder")),
                   FaultOf(status));
}

// Rank 0 may still be removing what the attempt before left in the folder, while this rank makes it for the next.
constexpr int kMostTries = 5;

// Whether what has the name of a save is an earlier try of it, whose name could not be synced: it was never said to be saved.
absl::StatusOr<bool> IsEarlierTry(const std::string& published, const CheckpointFence& fence) {
  const absl::StatusOr<CheckpointManifest> manifest = ReadManifest(published);
  if (manifest.ok()) return IsOwn(fence.owner, *manifest) && manifest->epoch == fence.epoch;
  if (absl::IsNotFound(manifest.status()) || absl::IsDataLoss(manifest.status())) return false;
  return manifest.status();
}

// Gives the folder its published name. Two clusters that begin in one folder at once may save the same step of the same
// generation: a folder is never renamed onto one that holds something, so that whoever comes second sees it.
absl::StatusOr<std::string> TakeName(const std::string& root, const CheckpointManifest& manifest, const std::string& temporary,
                                     const CheckpointFence& fence) {
  std::string published = absl::StrCat(root, "/", CheckpointFolderName(manifest.step, manifest.epoch));
  const std::string second = absl::StrCat(root, "/", CheckpointFolderName(manifest.step, manifest.epoch, fence.owner.uid));
  absl::Status moved = MoveCheckpoint(temporary, published, fence);
  for (int tries = 0; tries < kMostTries && absl::IsAlreadyExists(moved); ++tries) {
    if (FileExists(published)) {  // whatever has it may be gone again
      MOTLEY_ASSIGN_OR_RETURN(const bool own, IsEarlierTry(published, fence));
      if (!own && published == second) {
        return WithFault(absl::UnavailableError(absl::StrCat(published, " is there already, and is not this job's")),
                         Fault::kStorage);
      }
      if (own) MOTLEY_RETURN_IF_ERROR(DiscardCheckpoint(published, manifest.step, fence));
      if (!own) published = second;
    }
    moved = MoveCheckpoint(temporary, published, fence);
  }
  MOTLEY_RETURN_IF_ERROR(moved);
  return published;
}

}  // namespace

absl::StatusOr<CheckpointFile> WriteCheckpointFile(const std::string& folder, const std::string& file_name, DType dtype,
                                                   const std::vector<PieceData>& pieces) {
  CheckpointFile file;
  file.name = file_name;
  for (const PieceData& piece : pieces) {
    file.pieces.push_back({piece.unit, piece.tensor, piece.begin, piece.end, file.bytes});
    file.bytes += BytesOf(piece, dtype);
  }
  absl::StatusOr<std::vector<std::string>> blocks = absl::NotFoundError(folder);
  for (int tries = 0; tries < kMostTries && absl::IsNotFound(blocks.status()); ++tries) {
    const absl::Status made = MakeOwnFolder(folder);
    if (absl::IsNotFound(made)) continue;
    MOTLEY_RETURN_IF_ERROR(made);
    blocks = WritePieces(absl::StrCat(folder, "/", file_name), dtype, pieces);
  }
  if (!blocks.ok()) return Explain(blocks.status(), folder, file.bytes);
  file.blocks = *std::move(blocks);
  if (const absl::Status synced = SyncFolder(folder); !synced.ok()) return Explain(synced, folder, file.bytes);
  return file;
}

absl::StatusOr<std::string> PublishCheckpoint(const std::string& root, const CheckpointManifest& manifest,
                                              const CheckpointFence& fence) {
  const std::string name = CheckpointFolderName(manifest.step, manifest.epoch);
  const std::string temporary =
      absl::StrCat(root, "/", TemporaryCheckpointFolderName(manifest.step, manifest.epoch, fence.owner.uid));
  if (const std::vector<size_t> missing = FilesNotSeen(temporary, manifest.files, absl::ZeroDuration()); !missing.empty()) {
    return WithFault(absl::UnavailableError(absl::StrCat(temporary, "/", manifest.files[missing[0]].name, " is not seen here",
                                                         missing.size() == 1 ? "" : absl::StrCat(" (of ", missing.size(), ")"),
                                                         "; ", name, " is not published without it")),
                     Fault::kStorage);
  }
  MOTLEY_RETURN_IF_ERROR(fence.confirm(absl::StrCat("publish ", name)));
  if (const absl::Status newest = CheckIsNewest(root, fence); !newest.ok()) return Explain(newest, root, 0);
  MOTLEY_RETURN_IF_ERROR(BeforeOperation(fence, absl::StrCat("write the manifest of ", name)));
  const std::string text = ManifestToJson(manifest);
  const absl::Status written = WriteFileDurably(absl::StrCat(temporary, "/", kManifestName), text);
  if (!written.ok()) return Explain(written, temporary, static_cast<int64_t>(text.size()));
  if (const absl::Status synced = SyncFolder(temporary); !synced.ok()) return Explain(synced, temporary, 0);
  const absl::StatusOr<std::string> published = TakeName(root, manifest, temporary, fence);
  if (!published.ok()) return Explain(published.status(), temporary, 0);
  MOTLEY_RETURN_IF_ERROR(BeforeOperation(fence, absl::StrCat("sync the name of ", name)));
  if (const absl::Status synced = SyncFolder(root); !synced.ok()) return Explain(synced, *published, 0);
  return published;
}

}  // namespace motley
