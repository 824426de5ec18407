#include "common/base/landlock.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace motley {
namespace {

// The C library's headers may be older than the kernel.
constexpr uint64_t kRefer = 1ULL << 13;     // version 2
constexpr uint64_t kTruncate = 1ULL << 14;  // version 3
constexpr uint64_t kOfVersion1 = kRefer - 1;

constexpr uint64_t kReads = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr uint64_t kUses = kReads | LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate;
constexpr uint64_t kShares = kUses | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REMOVE_FILE;
constexpr uint64_t kChanges = kShares | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_REMOVE_DIR | kRefer;
// What a rule for a file may hold; the rest is of folders.
constexpr uint64_t kOfFiles =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate;

uint64_t RightsOf(FileAccess access) {
  switch (access) {
    case FileAccess::kRead:
      return kReads;
    case FileAccess::kUse:
      return kUses;
    case FileAccess::kShare:
      return kShares;
    case FileAccess::kChange:
      return kChanges;
  }
  return 0;
}

// What a kernel of this version restricts. Version 1 refuses renames between folders whatever the rules say, and truncates.
uint64_t HandledBy(int version) { return kOfVersion1 | (version >= 2 ? kRefer : 0) | (version >= 3 ? kTruncate : 0); }

absl::Status AddRule(const FileDescriptor& ruleset, const FileDescriptor& place, const FileGrant& grant, uint64_t handled) {
  struct stat found;
  if (::fstat(place.get(), &found) != 0) return FileError(errno, "look at", grant.place);
  landlock_path_beneath_attr rule = {};
  rule.allowed_access = RightsOf(grant.access) & handled & (S_ISDIR(found.st_mode) ? ~0ULL : kOfFiles);
  rule.parent_fd = place.get();
  if (::syscall(SYS_landlock_add_rule, ruleset.get(), LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0) return absl::OkStatus();
  return FileError(errno, "make a rule for", grant.place);
}

// Who may administer the system needs no promise; anybody else gives up what setuid programs would give.
bool RestrictSelf(const FileDescriptor& ruleset) {
  if (::syscall(SYS_landlock_restrict_self, ruleset.get(), 0) == 0) return true;
  return errno == EPERM && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::syscall(SYS_landlock_restrict_self, ruleset.get(), 0) == 0;
}

}  // namespace

absl::StatusOr<int> LandlockVersion() {
  const long version = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (version >= 1) return static_cast<int>(version);
  if (errno == EOPNOTSUPP) {
    return absl::FailedPreconditionError(
        "Landlock is not switched on in this kernel (it is told so by lsm=landlock,... at boot)");
  }
  if (errno == ENOSYS) return absl::FailedPreconditionError("this kernel has no Landlock (Linux 5.13 and newer can have it)");
  return absl::FailedPreconditionError(
      "a filter of system calls forbids Landlock (SystemCallFilter of the unit, or a container)");
}

absl::StatusOr<std::vector<FileDescriptor>> RestrictFiles(const std::vector<FileGrant>& grants) {
  MOTLEY_ASSIGN_OR_RETURN(const int version, LandlockVersion());
  landlock_ruleset_attr handled = {};
  handled.handled_access_fs = HandledBy(version);
  const FileDescriptor ruleset(
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &handled, sizeof(handled.handled_access_fs), 0)));
  if (ruleset.get() < 0) return FileError(errno, "make rules for", "files");
  std::vector<FileDescriptor> places;
  for (const FileGrant& grant : grants) {
    FileDescriptor place(::open(grant.place.c_str(), O_PATH | O_CLOEXEC));
    if (place.get() < 0) continue;
    MOTLEY_RETURN_IF_ERROR(AddRule(ruleset, place, grant, handled.handled_access_fs));
    places.push_back(std::move(place));
  }
  if (!RestrictSelf(ruleset)) {
    const int why = errno;
    return FileError(why, "hold this process to", absl::StrCat(grants.size(), " places"));
  }
  return places;
}

}  // namespace motley
