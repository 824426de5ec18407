// coordinator.mark: how far the database has got, kept apart from it. It is written after every commit and never before one, so a
// database that counts fewer commits is not the newest: its log was lost, or an older copy was put in its place.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/files.h"
#include "common/session/session.h"

namespace motley::coordinator {

// Two lines, written in turn, each with a hash of itself: one that is half written leaves the other. A write goes to the kernel
// and outlives the process; the disk gets it every 64 commits, so after a power cut the file may be that many commits behind.
// Not thread-safe.
class MarkFile {
 public:
  struct Content {
    std::optional<StoreMark> mark;  // the newest line that is whole
    bool exists = false;
    bool damaged = false;  // a line is not what was written
  };
  // INTERNAL: it is there and cannot be read.
  static absl::StatusOr<Content> Read(const std::string& path);
  // Created if missing. PERMISSION_DENIED, RESOURCE_EXHAUSTED.
  static absl::StatusOr<std::unique_ptr<MarkFile>> Open(const std::string& path);

  absl::Status Write(const StoreMark& mark);

 private:
  MarkFile(std::string path, FileDescriptor file) : path_(std::move(path)), file_(std::move(file)) {}
  const std::string path_;
  FileDescriptor file_;
  int64_t writes_ = 0;
};

}  // namespace motley::coordinator
