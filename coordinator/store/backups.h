// Backups of a store that is in use, in a folder that outlives its machine: the newest few are kept. docs/inside/store.md
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace motley::coordinator {

inline constexpr size_t kBackupsKept = 24;

// Whose backup it is: a coordinator that was replaced has the same store, and must neither hide nor remove its successor's.
struct BackupOwner {
  std::string store_id;
  int64_t term = 0;  // number
};
// "motley-STORE-TERM-UNIX_MS.db": whose, and when; never before one that is there, whatever the clock says.
std::string BackupName(const BackupOwner& owner, int64_t unix_ms);

// One more backup of the store in `state_folder`, mode 0600; then the owner's oldest beyond kBackupsKept go. Returns
// its path. Thread-safe beside the store's own writes. NOT_FOUND: `folder` is not there, which is never made: a share may be
// missing. PERMISSION_DENIED: its group or others may write in it, and so put another store in the backup's place; errors of
// files and of BackUpStore.
absl::StatusOr<std::string> AddBackup(const std::string& state_folder, const std::string& folder, const BackupOwner& owner,
                                      int64_t unix_ms);

// Of the backups in a folder the newest one of the highest term; a path that is no folder is returned as it is. NOT_FOUND: there
// is none; INVALID_ARGUMENT: they are of several stores, so somebody must say which.
absl::StatusOr<std::string> NewestBackup(const std::string& path);

}  // namespace motley::coordinator
