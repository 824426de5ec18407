#include "coordinator/store/state_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"

namespace motley::coordinator {
namespace {

constexpr mode_t kModeOfNew = 0710;  // the group walks through, to the socket for people

absl::Status Rename(const std::string& from, const std::string& to) {
  return rename(from.c_str(), to.c_str()) == 0 ? absl::OkStatus() : FileError(errno, "rename", from);
}

}  // namespace

absl::StatusOr<StateFolder> StateFolder::Lock(const std::string& path) {
  const bool is_new = !FileExists(path);
  if (absl::Status made = MakeFolders(path); !made.ok()) {
    return absl::PermissionDeniedError(absl::StrCat("state folder '", path, "': ", std::string(made.message())));
  }
  if (is_new && chmod(path.c_str(), kModeOfNew) != 0) return FileError(errno, "close to others", path);
  const std::string lock_path = path + "/coordinator.lock";
  FileDescriptor lock(open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (lock.get() < 0) return FileError(errno, "write", lock_path);
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return absl::UnavailableError(
        absl::StrCat("state folder '", path, "': another coordinator uses it, or a command that mends it"));
  }
  StateFolder folder(path, std::move(lock));
  MOTLEY_RETURN_IF_ERROR(folder.FinishReplacing("replaced").status());
  return folder;
}

absl::StatusOr<std::string> StateFolder::Replace(std::string_view because) {
  MOTLEY_RETURN_IF_ERROR(Rename(Draft(), Ready()));
  MOTLEY_RETURN_IF_ERROR(SyncFolder(path_));
  return FinishReplacing(because);
}

absl::StatusOr<std::string> StateFolder::FinishReplacing(std::string_view because) {
  if (!FileExists(Ready())) return "";
  const std::string aside = absl::StrCat(Database(), ".", std::string(because), "-", absl::ToUnixMillis(absl::Now()));
  const bool had = FileExists(Database());
  // The log first: with the new database it would be taken for that one's.
  if (FileExists(Database() + "-wal")) MOTLEY_RETURN_IF_ERROR(Rename(Database() + "-wal", aside + "-wal"));
  if (had) MOTLEY_RETURN_IF_ERROR(Rename(Database(), aside));
  MOTLEY_RETURN_IF_ERROR(Rename(Ready(), Database()));
  MOTLEY_RETURN_IF_ERROR(SyncFolder(path_));
  return had ? aside : "";
}

}  // namespace motley::coordinator
