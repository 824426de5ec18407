// A file of the data, read at any place from the descriptor that was opened. Whoever changes, cuts, lengthens, removes or
// replaces it is noticed at the next read: a job trains on what it began with, or ends. What may have been a change or not, as
// another mode, another name of the file, or a write behind which the time was put back, is noted, so that the contents can be
// compared once more. Thread-safe.
#pragma once

#include <sys/stat.h>

#include <atomic>
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
  int64_t bytes = 0, seconds = 0, nanoseconds = 0;  // the time of its last write, which whoever writes may set
  friend auto operator<=>(const FileMark&, const FileMark&) = default;
};
FileMark MarkOf(const struct stat& found);
// When anything of it last changed, contents or not: nobody sets this time. In nanoseconds.
int64_t AlteredAt(const struct stat& found);

class WatchedFile {
 public:
  // The file as it is now; `path` names it in errors. INVALID_ARGUMENT: no regular file.
  static absl::StatusOr<std::shared_ptr<const WatchedFile>> Watch(FileDescriptor file, std::string path);
  WatchedFile(FileDescriptor file, std::string path, const struct stat& found);

  const std::string& path() const { return path_; }
  const FileMark& mark() const { return mark_; }
  int64_t bytes() const { return mark_.bytes; }

  // Exactly so many bytes; nothing is kept of them. OUT_OF_RANGE where it never had them; FAILED_PRECONDITION where it changed.
  absl::Status Read(int64_t offset, void* out, int64_t bytes) const;
  // The same in blocks of at most a mebibyte; stops at the first error that `use` returns.
  absl::Status ForEachBlock(int64_t offset, int64_t bytes, const std::function<absl::Status(std::string_view)>& use) const;
  absl::Status CheckUnchanged() const;

  // Whether it lies where its path leads; a path that says something else is only for people.
  bool is_named() const { return is_named_; }
  // When it was last altered, as far as was looked.
  int64_t altered_at() const { return altered_at_; }
  // What is read from here on is to be compared with what was prepared: notes how the file is now.
  absl::Status BeginComparison() const;
  // Whether it was altered since the last call, or since the comparison began, and nobody knows whether in its contents.
  bool TakeTouched() const { return touched_.exchange(false); }

 private:
  const FileDescriptor file_;
  const std::string path_;
  const FileMark mark_;
  const bool has_links_;  // some file systems count none
  const bool is_named_;
  mutable std::atomic<int64_t> altered_at_;
  mutable std::atomic<bool> touched_{false};
};

}  // namespace motley
