#include "common/data/watched_file.h"

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace motley {
namespace {

constexpr int64_t kBlockBytes = 1 << 20;

absl::Status Changed(const std::string& path, const std::string& how) {
  return absl::FailedPreconditionError(
      absl::StrCat("data file ", path, " ", how, " after it was opened; put it back as it was, or begin a new job"));
}

}  // namespace

FileMark MarkOf(const struct stat& found) {
  return {.device = static_cast<uint64_t>(found.st_dev),
          .number = static_cast<uint64_t>(found.st_ino),
          .bytes = found.st_size,
          .seconds = found.st_mtim.tv_sec,
          .nanoseconds = found.st_mtim.tv_nsec};
}

absl::StatusOr<std::shared_ptr<const WatchedFile>> WatchedFile::Watch(FileDescriptor file, std::string path) {
  struct stat found;
  if (::fstat(file.get(), &found) != 0) return FileError(errno, "read", path);
  MOTLEY_RETURN_IF_ERROR(NotRegular(found.st_mode, path));
  return std::make_shared<const WatchedFile>(std::move(file), std::move(path), MarkOf(found), found.st_nlink > 0);
}

absl::Status WatchedFile::CheckUnchanged() const {
  struct stat found;
  if (::fstat(file_.get(), &found) != 0) return FileError(errno, "read", path_);
  if (found.st_size != mark_.bytes) {
    return Changed(path_, absl::StrCat("was ", found.st_size < mark_.bytes ? "cut" : "lengthened", " from ", mark_.bytes, " to ",
                                       static_cast<int64_t>(found.st_size), " bytes"));
  }
  if (MarkOf(found) != mark_) return Changed(path_, "was written to");
  // What is read is still the old file, but the next start would find another.
  if (has_links_ && found.st_nlink == 0) return Changed(path_, "was removed or replaced");
  return absl::OkStatus();
}

absl::Status WatchedFile::Read(int64_t offset, void* out, int64_t bytes) const {
  if (offset < 0 || bytes < 0 || offset > mark_.bytes || bytes > mark_.bytes - offset) {
    return absl::OutOfRangeError(
        absl::StrCat("data file ", path_, " has ", mark_.bytes, " bytes; ", bytes, " were asked for at byte ", offset));
  }
  MOTLEY_RETURN_IF_ERROR(CheckUnchanged());
  const absl::Status read = ReadAt(file_, path_, offset, out, bytes);
  if (!absl::IsDataLoss(read)) return read;  // it ends earlier: cut this very moment
  const absl::Status changed = CheckUnchanged();
  return changed.ok() ? read : changed;
}

absl::Status WatchedFile::ForEachBlock(int64_t offset, int64_t bytes,
                                       const std::function<absl::Status(std::string_view)>& use) const {
  std::vector<char> block(static_cast<size_t>(std::clamp<int64_t>(bytes, 0, kBlockBytes)));
  for (int64_t done = 0; done < bytes;) {
    const int64_t next = std::min(bytes - done, kBlockBytes);
    MOTLEY_RETURN_IF_ERROR(Read(offset + done, block.data(), next));
    MOTLEY_RETURN_IF_ERROR(use(std::string_view(block.data(), static_cast<size_t>(next))));
    done += next;
  }
  return absl::OkStatus();
}

}  // namespace motley
