// The folder of the coordinator's durable state: who has it, what the files in it are called, and how one database takes the
// place of another.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/base/files.h"

namespace motley::coordinator {

// Locked for as long as it lives. Movable.
class StateFolder {
 public:
  // Created if missing. UNAVAILABLE: another process has it; PERMISSION_DENIED. A replacement that a crash interrupted is
  // finished.
  static absl::StatusOr<StateFolder> Lock(const std::string& path);

  std::string Database() const { return path_ + "/coordinator.db"; }
  std::string Mark() const { return path_ + "/coordinator.mark"; }
  // Where a new database is made, and where it is put once it is whole.
  std::string Draft() const { return path_ + "/coordinator.db.draft"; }
  // The finished draft becomes the database. The one from before is kept beside it, with its log; the name that it got is
  // returned, or "" when there was none. A crash leaves the one or the other, and the next Lock finishes.
  absl::StatusOr<std::string> Replace(std::string_view because);

 private:
  StateFolder(std::string path, FileDescriptor lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  std::string Ready() const { return path_ + "/coordinator.db.ready"; }
  absl::StatusOr<std::string> FinishReplacing(std::string_view because);
  std::string path_;
  FileDescriptor lock_;
};

}  // namespace motley::coordinator
