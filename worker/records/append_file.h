// A new file that only grows, by whole records.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/files.h"

namespace motley::worker {

class AppendFile {
 public:
  // ALREADY_EXISTS when something has the name, a link included.
  static absl::StatusOr<AppendFile> CreateNew(const std::string& path);

  // All of it or nothing: after an error the file ends where it ended before, as far as the file system still obeys.
  absl::Status Append(std::string_view records);
  // What was appended survives a power cut.
  absl::Status Sync();
  bool empty() const { return bytes_ == 0; }
  const std::string& path() const { return path_; }

 private:
  AppendFile(std::string path, FileDescriptor file) : path_(std::move(path)), file_(std::move(file)) {}
  std::string path_;
  FileDescriptor file_;
  int64_t bytes_ = 0;
};

}  // namespace motley::worker
