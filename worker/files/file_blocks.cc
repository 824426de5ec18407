#include "worker/files/file_blocks.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_manifest.h"
#include "worker/files/input_folder.h"

namespace motley::worker {
namespace {

constexpr int64_t kPartBytes = int64_t{128} << 10;

absl::StatusOr<FileBlocks> BlocksOf(FileDescriptor file, std::string name, bool one_block) {
  FileBlocks opened{std::move(file), std::move(name)};
  struct stat found {};
  if (::fstat(opened.file.get(), &found) != 0) return FileError(errno, "look at", opened.name);
  opened.bytes = found.st_size;
  if (one_block && opened.bytes > kMostManifestBytes) return absl::NotFoundError(absl::StrCat(opened.name, " is none"));
  if (one_block) opened.block_bytes = std::max(opened.bytes, int64_t{1});
  return opened;
}

}  // namespace

absl::StatusOr<FileBlocks> OpenFileBlocks(const std::string& local, const LocalCheckpoint& checkpoint, const std::string& file) {
  MOTLEY_ASSIGN_OR_RETURN(FileDescriptor opened, OpenCheckpointFile(local, checkpoint, file));
  return BlocksOf(std::move(opened), absl::StrCat(file.empty() ? kManifestName : file, " of ", checkpoint.name),
                  IsOneBlock(file));
}

absl::StatusOr<FileBlocks> OpenInputBlocks(const std::string& local, const std::string& id, const std::string& file) {
  MOTLEY_ASSIGN_OR_RETURN(FileDescriptor opened, OpenInputFile(local, id, file));
  return BlocksOf(std::move(opened), absl::StrCat(file.empty() ? "the list" : CleanLine(file), " of input ", id), file.empty());
}

absl::Status GiveBlocks(const FileBlocks& from, const std::vector<int64_t>& blocks,
                        const std::function<bool(int64_t block, std::string bytes)>& give) {
  const int64_t count = (from.bytes + from.block_bytes - 1) / from.block_bytes;
  for (const int64_t block : blocks) {
    if (block >= 0 && block < count) continue;
    return absl::OutOfRangeError(absl::StrCat(from.name, " has ", count, " blocks here, and no block ", block));
  }
  for (const int64_t block : blocks) {
    const int64_t end = std::min(from.bytes, (block + 1) * from.block_bytes);
    for (int64_t at = block * from.block_bytes; at < end; at += kPartBytes) {
      std::string bytes(static_cast<size_t>(std::min(kPartBytes, end - at)), '\0');
      MOTLEY_RETURN_IF_ERROR(ReadAt(from.file, from.name, at, bytes.data(), static_cast<int64_t>(bytes.size())));
      if (!give(block, std::move(bytes))) return absl::CancelledError("the reader is gone");
    }
  }
  return absl::OkStatus();
}

}  // namespace motley::worker
