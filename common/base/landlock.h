// Landlock: the kernel holds a process to parts of the file system, whatever its paths lead to. It takes rights away and needs
// none; what the process has open stays usable. Only files are restricted, no network. docs/use/security.md, "Files of jobs".
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/files.h"

namespace motley {

// Each with what those before it allow.
enum class FileAccess {
  kRead,    // files and folders are read, programs run
  kUse,     // what is there is written: devices
  kShare,   // files are made and removed
  kChange,  // folders are, too; names move
};

// What lies beneath the place, mounts included.
struct FileGrant {
  std::string place;
  FileAccess access;
};

// The version of the kernel's interface, from 1. FAILED_PRECONDITION says why there is none.
absl::StatusOr<int> LandlockVersion();

// From now on the calling thread, and what it starts, use files as the grants say and no others; links are followed when the
// grants are made. Places that are not there are left out, and stay closed. Keep what is returned: a place that is a mount is
// not unmounted as idle meanwhile (mounted anew, it would be closed). Errors as LandlockVersion, and FileError.
absl::StatusOr<std::vector<FileDescriptor>> RestrictFiles(const std::vector<FileGrant>& grants);

}  // namespace motley
