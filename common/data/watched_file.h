// A file of the data, read at any place from the descriptor that was opened. Whoever changes, cuts, lengthens or replaces it is
// noticed at the next read: a job trains on what it began with, or ends. Thread-safe.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/files.h"

namespace motley {

// By what a file is told from another, and from itself after a change.
struct FileMark {
  uint64_t device = 0, number = 0;
  int64_t bytes = 0, seconds = 0, nanoseconds = 0;  // the time of its last change
  friend auto operator<=>(const FileMark&, const FileMark&) = default;
};
FileMark MarkOf(const struct stat& found);

class WatchedFile {
 public:
  // The file as it is now; `path` names it in errors. INVALID_ARGUMENT: no regular file.
  static absl::StatusOr<std::shared_ptr<const WatchedFile>> Watch(FileDescriptor file, std::string path);
  WatchedFile(FileDescriptor file, std::string path, const FileMark& mark, bool has_links)
      : file_(std::move(file)), path_(std::move(path)), mark_(mark), has_links_(has_links) {}

  const std::string& path() const { return path_; }
  const FileMark& mark() const { return mark_; }
  int64_t bytes() const { return mark_.bytes; }

  // Exactly so many bytes; nothing is kept of them. OUT_OF_RANGE where it never had them; FAILED_PRECONDITION where it changed.
  absl::Status Read(int64_t offset, void* out, int64_t bytes) const;
  // The same in blocks of at most a mebibyte; stops at the first error that `use` returns.
  absl::Status ForEachBlock(int64_t offset, int64_t bytes, const std::function<absl::Status(std::string_view)>& use) const;
  absl::Status CheckUnchanged() const;

 private:
  const FileDescriptor file_;
  const std::string path_;
  const FileMark mark_;
  const bool has_links_;  // some file systems count none
};

}  // namespace motley
