// A folder below a mount point at which nothing is mounted is another folder than it seems: what is written there is hidden when
// the mount is back, and what is there is not seen.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace motley {

// FAILED_PRECONDITION: the path, or what it leads to, lies at or below a mount point of `fstab` (fstab(5)) that `mounts`
// (proc_mounts(5)) has not; names both. An automount that nobody has used is there. Tables that cannot be read say nothing.
absl::Status CheckMounted(const std::string& path, const std::string& fstab = "/etc/fstab",
                          const std::string& mounts = "/proc/self/mounts");

}  // namespace motley
