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

enum class Place { kHere, kNotHere, kUnknown };

// What cannot be looked at now, as of a share that is late, says nothing.
Place LiesAt(const std::string& path, const FileMark& mark) {
  struct stat found;
  if (::stat(path.c_str(), &found) != 0) return errno == ENOENT || errno == ENOTDIR ? Place::kNotHere : Place::kUnknown;
  const FileMark there = MarkOf(found);
  return there.device == mark.device && there.number == mark.number ? Place::kHere : Place::kNotHere;
}

}  // namespace

FileMark MarkOf(const struct stat& found) {
  return {.device = static_cast<uint64_t>(found.st_dev),
          .number = static_cast<uint64_t>(found.st_ino),
          .bytes = found.st_size,
          .seconds = found.st_mtim.tv_sec,
          .nanoseconds = found.st_mtim.tv_nsec};
}

int64_t AlteredAt(const struct stat& found) {
  constexpr int64_t kNsPerSecond = 1'000'000'000;
  return static_cast<int64_t>(found.st_ctim.tv_sec) * kNsPerSecond + found.st_ctim.tv_nsec;
}

WatchedFile::WatchedFile(FileDescriptor file, std::string path, const struct stat& found)
    : file_(std::move(file)),
      path_(std::move(path)),
      mark_(MarkOf(found)),
      has_links_(found.st_nlink > 0),
      is_named_(LiesAt(path_, mark_) == Place::kHere),
      altered_at_(AlteredAt(found)) {}

absl::StatusOr<std::shared_ptr<const WatchedFile>> WatchedFile::Watch(FileDescriptor file, std::string path) {
  struct stat found;
  if (::fstat(file.get(), &found) != 0) return FileError(errno, "read", path);
  MOTLEY_RETURN_IF_ERROR(NotRegular(found.st_mode, path));
  return std::make_shared<const WatchedFile>(std::move(file), std::move(path), found);
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
  // It may have another name, by which it stays.
  if (is_named_ && LiesAt(path_, mark_) == Place::kNotHere) return Changed(path_, "was removed or replaced");
  const int64_t altered_at = AlteredAt(found);
  if (altered_at_.exchange(altered_at) != altered_at) touched_ = true;
  return absl::OkStatus();
}

absl::Status WatchedFile::BeginComparison() const {
  MOTLEY_RETURN_IF_ERROR(CheckUnchanged());
  touched_ = false;
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
