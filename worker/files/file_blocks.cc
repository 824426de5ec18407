#include "worker/files/file_blocks.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_manifest.h"
#include "common/inputs/input_list.h"
#include "worker/files/input_folder.h"

namespace motley::worker {
namespace {

constexpr int kLooksOfHalf = 5;
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

// A hole is not read, if the file system says that it is one.
bool IsHole(const FileBlocks& from, int64_t begin, int64_t end) {
  const off_t hole = ::lseek(from.file.get(), begin, SEEK_HOLE);
  return hole >= 0 && hole < end;
}

// What is written there meanwhile is found half: its digest says when it is whole.
absl::Status AwaitBlock(const FileBlocks& from, int64_t block, const std::function<bool()>& wait) {
  if (from.coming.empty()) return absl::OkStatus();
  const int64_t begin = block * from.block_bytes, end = std::min(from.bytes, begin + from.block_bytes);
  std::string bytes(static_cast<size_t>(end - begin), '\0');
  while (true) {
    const bool hole = IsHole(from, begin, end);
    if (!hole) {
      MOTLEY_RETURN_IF_ERROR(ReadAt(from.file, from.name, begin, bytes.data(), end - begin));
      if (Sha256Hex(bytes) == from.coming[static_cast<size_t>(block)]) return absl::OkStatus();
    }
    // What is half there is not read again at once.
    for (int looks = 0; looks < (hole ? 1 : kLooksOfHalf); ++looks) {
      if (!wait()) return absl::ResourceExhaustedError(absl::StrCat("block ", block, " of ", from.name, " is not here yet"));
    }
  }
}

}  // namespace

absl::StatusOr<FileBlocks> OpenFileBlocks(const std::string& local, const LocalCheckpoint& checkpoint, const std::string& file) {
  MOTLEY_ASSIGN_OR_RETURN(FileDescriptor opened, OpenCheckpointFile(local, checkpoint, file));
  return BlocksOf(std::move(opened), absl::StrCat(file.empty() ? kManifestName : file, " of ", checkpoint.name),
                  IsOneBlock(file));
}

absl::StatusOr<FileBlocks> OpenInputBlocks(const std::string& local, const std::string& id, const std::string& file) {
  const std::string name = absl::StrCat(file.empty() ? "the list" : CleanLine(file), " of input ", id);
  absl::StatusOr<FileDescriptor> whole = OpenInputFile(local, id, file);
  if (whole.ok() || !absl::IsNotFound(whole.status()) || file.empty()) {
    MOTLEY_RETURN_IF_ERROR(whole.status());
    return BlocksOf(*std::move(whole), name, file.empty());
  }
  MOTLEY_ASSIGN_OR_RETURN(FileDescriptor part, OpenPartOfInput(local, id, file));
  MOTLEY_ASSIGN_OR_RETURN(const FileDescriptor text, OpenInputFile(local, id, ""));
  MOTLEY_ASSIGN_OR_RETURN(const std::string read, ReadSmallFile(text, name, kMostInputListBytes));
  MOTLEY_ASSIGN_OR_RETURN(const InputList list, InputListFromJson(read, id));
  MOTLEY_ASSIGN_OR_RETURN(FileBlocks opened, BlocksOf(std::move(part), name, false));
  const auto listed = std::find_if(list.files.begin(), list.files.end(), [&](const auto& each) { return each.name == file; });
  if (listed == list.files.end() || listed->bytes != opened.bytes) return whole.status();
  opened.coming = listed->blocks;
  return opened;
}

absl::Status GiveBlocks(const FileBlocks& from, const std::vector<int64_t>& blocks,
                        const std::function<bool(int64_t block, std::string bytes)>& give, const std::function<bool()>& wait) {
  const int64_t count = (from.bytes + from.block_bytes - 1) / from.block_bytes;
  for (const int64_t block : blocks) {
    if (block >= 0 && block < count) continue;
    return absl::OutOfRangeError(absl::StrCat(from.name, " has ", count, " blocks here, and no block ", block));
  }
  for (const int64_t block : blocks) {
    MOTLEY_RETURN_IF_ERROR(AwaitBlock(from, block, wait));
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
