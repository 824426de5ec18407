#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/checkpoint.h"
#include "common/checkpoint_manifest.h"
#include "common/files.h"
#include "common/sha256.h"
#include "common/status_macros.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

int64_t BytesOf(const PieceData& piece, DType dtype) { return (piece.end - piece.begin) * SizeOfBytes(dtype); }

// Returns the digest. A file that cannot be finished is removed.
absl::StatusOr<std::string> WritePieces(const std::string& path, DType dtype, const std::vector<PieceData>& pieces) {
  MOTLEY_ASSIGN_OR_RETURN(FileWriter writer, FileWriter::Create(path));
  Sha256 sha;
  for (const PieceData& piece : pieces) {
    const int64_t bytes = BytesOf(piece, dtype);
    sha.Update(piece.data, static_cast<size_t>(bytes));
    MOTLEY_RETURN_IF_ERROR(writer.Write(piece.data, bytes));
  }
  MOTLEY_RETURN_IF_ERROR(writer.Finish());
  return sha.Hex();
}

// The same error with what the reader needs: folder, bytes wanted, bytes free.
absl::Status Explain(const absl::Status& status, const std::string& folder, int64_t bytes) {
  if (!absl::IsResourceExhausted(status)) return status;
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  const std::string free = error ? "" : absl::StrCat(", ", space.available, " bytes are free");
  return absl::ResourceExhaustedError(absl::StrCat("checkpoint folder ", folder, " is full: ", bytes, " bytes to write", free,
                                                   " (", std::string(status.message()),
                                                   "); free space there or choose another checkpoint.folder"));
}

// Moves `from` to the name `to`, which may exist: at every instant one of the two complete folders has the name.
absl::Status ReplaceFolder(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  if (errno != EEXIST && errno != ENOTEMPTY) return FileError(errno, "publish the checkpoint", to);
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) return RemoveTree(from);
  // The file system cannot exchange (NFS): for an instant the name is missing, and the checkpoint before is the newest.
  const std::string aside = absl::StrCat(from, ".replaced");
  if (::rename(to.c_str(), aside.c_str()) != 0) return FileError(errno, "replace the checkpoint", to);
  if (::rename(from.c_str(), to.c_str()) != 0) return FileError(errno, "publish the checkpoint", to);
  return RemoveTree(aside);
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
  MOTLEY_RETURN_IF_ERROR(MakeOwnFolder(folder));
  absl::StatusOr<std::string> digest = WritePieces(absl::StrCat(folder, "/", file_name), dtype, pieces);
  if (!digest.ok()) {
    const absl::Status explained = Explain(digest.status(), folder, file.bytes);
    ::rmdir(folder.c_str());  // goes with the last file that could not be written
    return explained;
  }
  file.digest = *std::move(digest);
  MOTLEY_RETURN_IF_ERROR(SyncFolder(folder));
  return file;
}

absl::Status PublishCheckpoint(const std::string& temporary_folder, const std::string& final_folder,
                               const CheckpointManifest& manifest) {
  const std::string text = ManifestToJson(manifest);
  const absl::Status written = WriteFileDurably(absl::StrCat(temporary_folder, "/", kManifestName), text);
  if (!written.ok()) return Explain(written, temporary_folder, static_cast<int64_t>(text.size()));
  MOTLEY_RETURN_IF_ERROR(SyncFolder(temporary_folder));
  MOTLEY_RETURN_IF_ERROR(ReplaceFolder(temporary_folder, final_folder));
  return SyncFolder(fs::path(final_folder).parent_path().string());
}

}  // namespace motley
