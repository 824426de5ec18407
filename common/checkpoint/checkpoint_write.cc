#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

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
  const bool quota = !error && space.available > static_cast<uint64_t>(bytes);
  return WithFault(absl::ResourceExhaustedError(absl::StrCat(
                       "checkpoint folder ", folder, quota ? " takes no more (a quota?): " : " is full: ", bytes,
                       " bytes to write", free, " (", reason, "); free space there or choose another checkpoint.folder")),
                   FaultOf(status));
}

// What a publication displaced was looked at too early if it is newer: it gets its name again. FAILED_PRECONDITION then.
absl::Status PutBackIfNewer(const std::string& displaced, const std::string& published, const CheckpointFence& fence) {
  if (displaced.empty()) return absl::OkStatus();
  const absl::StatusOr<int64_t> epoch = EpochThatWrote(displaced);
  if (epoch.ok() && *epoch <= fence.epoch) return absl::OkStatus();
  MOTLEY_RETURN_IF_ERROR(PutBackCheckpoint(displaced, published, fence));
  return epoch.ok() ? NewerEpochWrote(published, fence.epoch) : epoch.status();
}

// The epoch is not the newest any more: what it published gives up the name, to the checkpoint that had it if there was one.
absl::Status TakeBack(const std::string& published, const std::string& displaced, int64_t step, const CheckpointFence& fence) {
  const absl::StatusOr<int64_t> epoch = EpochThatWrote(published);
  if (!epoch.ok() || *epoch != fence.epoch) return epoch.status();  // not ours
  if (displaced.empty()) return DiscardCheckpoint(published, step, kAsideSuffix, fence);
  const absl::StatusOr<std::string> ours = PlaceCheckpoint(displaced, published, fence);
  if (absl::IsNotFound(ours.status())) return DiscardCheckpoint(published, step, kAsideSuffix, fence);
  if (!ours.ok()) return ours.status();
  // A newer one may have taken the name just before: it gets it again.
  MOTLEY_RETURN_IF_ERROR(PutBackIfNewer(*ours, published, fence));
  return ours->empty() ? absl::OkStatus() : DiscardCheckpoint(*ours, step, kTrashSuffix, fence);
}

// Rank 0 may still be removing what the attempt before left in the folder, while this rank makes it for the next.
constexpr int kMostTries = 5;

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

absl::Status PublishCheckpoint(const std::string& temporary_folder, const std::string& final_folder,
                               const CheckpointManifest& manifest, const CheckpointFence& fence) {
  const std::string name = fs::path(final_folder).filename().string();
  if (const std::vector<size_t> missing = FilesNotSeen(temporary_folder, manifest.files, absl::ZeroDuration());
      !missing.empty()) {
    return WithFault(
        absl::UnavailableError(absl::StrCat(temporary_folder, "/", manifest.files[missing[0]].name, " is not seen here",
                                            missing.size() == 1 ? "" : absl::StrCat(" (of ", missing.size(), ")"), "; ", name,
                                            " is not published without it")),
        Fault::kStorage);
  }
  MOTLEY_RETURN_IF_ERROR(fence.confirm(absl::StrCat("publish ", name)));
  MOTLEY_RETURN_IF_ERROR(BeforeOperation(fence, absl::StrCat("write the manifest of ", name)));
  const std::string text = ManifestToJson(manifest);
  const absl::Status written = WriteFileDurably(absl::StrCat(temporary_folder, "/", kManifestName), text);
  if (!written.ok()) return Explain(written, temporary_folder, static_cast<int64_t>(text.size()));
  if (const absl::Status synced = SyncFolder(temporary_folder); !synced.ok()) return Explain(synced, temporary_folder, 0);

  MOTLEY_ASSIGN_OR_RETURN(const int64_t there, EpochThatWrote(final_folder));
  if (there > fence.epoch) return NewerEpochWrote(final_folder, fence.epoch);
  const absl::StatusOr<std::string> placed = PlaceCheckpoint(temporary_folder, final_folder, fence);
  if (!placed.ok()) return Explain(placed.status(), temporary_folder, 0);
  const std::string& displaced = *placed;
  MOTLEY_RETURN_IF_ERROR(PutBackIfNewer(displaced, final_folder, fence));
  MOTLEY_RETURN_IF_ERROR(BeforeOperation(fence, absl::StrCat("sync the name of ", name)));
  if (const absl::Status synced = SyncFolder(fs::path(final_folder).parent_path().string()); !synced.ok()) {
    return Explain(synced, final_folder, 0);
  }

  const absl::Status newest = fence.confirm(absl::StrCat("keep ", name));
  if (absl::IsFailedPrecondition(newest)) (void)TakeBack(final_folder, displaced, manifest.step, fence);
  MOTLEY_RETURN_IF_ERROR(newest);
  // What stays of it is settled by the next epoch; the new checkpoint is whole.
  if (!displaced.empty()) (void)DiscardCheckpoint(displaced, manifest.step, kTrashSuffix, fence);
  return absl::OkStatus();
}

absl::Status RemoveTemporaryCheckpoint(const std::string& folder, const CheckpointFence& fence) {
  MOTLEY_ASSIGN_OR_RETURN(const int64_t epoch, EpochThatWrote(folder));
  // With another's manifest it is a checkpoint that a publication displaced: the next epoch settles it.
  if (epoch != 0 && epoch != fence.epoch) return absl::OkStatus();
  MOTLEY_RETURN_IF_ERROR(BeforeOperation(fence, absl::StrCat("delete ", folder)));
  return RemoveTree(folder);
}

}  // namespace motley
