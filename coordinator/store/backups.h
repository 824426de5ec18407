// Backups of a store that is in use, in a folder that outlives its machine: the newest few are kept. docs/store.md
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace motley::coordinator {

inline constexpr size_t kBackupsKept = 24;

// "motley-STORE-UNIX_MS.db": of which store, and when; never before one that is there, whatever the clock says.
std::string BackupName(const std::string& store_id, int64_t unix_ms);

// One more backup of the store in `state_folder`, mode 0600; then the oldest of the same store beyond kBackupsKept go. Returns
// its path. Thread-safe beside the store's own writes. NOT_FOUND: `folder` is not there, which is never made: a share may be
// missing. PERMISSION_DENIED: its group or others may write in it, and so put another store in the backup's place; errors of
// files and of BackUpStore.
absl::StatusOr<std::string> AddBackup(const std::string& state_folder, const std::string& folder, const std::string& store_id,
                                      int64_t unix_ms);

// Of the backups in a folder the newest one; a path that is no folder is returned as it is. NOT_FOUND: there is none;
// INVALID_ARGUMENT: they are of several stores, so somebody must say which.
absl::StatusOr<std::string> NewestBackup(const std::string& path);

}  // namespace motley::coordinator
