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
#include "common/checkpoint/checkpoint_publish.h"

namespace motley {
namespace {

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
  if (!blocks.ok()) return ExplainSave(blocks.status(), folder, file.bytes);
  file.blocks = *std::move(blocks);
  if (const absl::Status synced = SyncFolder(folder); !synced.ok()) return ExplainSave(synced, folder, file.bytes);
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
  if (const absl::Status newest = CheckIsNewest(root, fence); !newest.ok()) return ExplainSave(newest, root, 0);
  MOTLEY_RETURN_IF_ERROR(BeforeOperation(fence, absl::StrCat("write the manifest of ", name)));
  const std::string text = ManifestToJson(manifest);
  const absl::Status written = WriteFileDurably(absl::StrCat(temporary, "/", kManifestName), text);
  if (!written.ok()) return ExplainSave(written, temporary, static_cast<int64_t>(text.size()));
  return NameCheckpoint(root, manifest, temporary, SecondName::kOfTheUid, fence);
}

}  // namespace motley
