#include "worker/daemon/card_claim.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/clean_text.h"

namespace motley::worker {
namespace {

constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;

// The kernel lets nobody open another user's file with O_CREAT in a folder that all may write: first without.
int Open(const std::string& path) {
  int fd = open(path.c_str(), kFlags);
  if (fd >= 0 || errno != ENOENT) return fd;
  fd = open(path.c_str(), kFlags | O_CREAT | O_EXCL, 0666);
  if (fd >= 0) (void)fchmod(fd, 0666);  // whatever the umask: another user's worker must be able to look
  return fd >= 0 || errno != EEXIST ? fd : open(path.c_str(), kFlags);
}

}  // namespace

std::string RunFolder() {
  const char* folder = std::getenv("MOTLEY_RUN_FOLDER");
  if (folder != nullptr && *folder != '\0') return folder;
  return access("/run/lock", W_OK | X_OK) == 0 ? "/run/lock" : "/tmp";
}

absl::StatusOr<CardClaim> CardClaim::Take(const std::string& folder, const std::string& uuid) {
  const std::string path = absl::StrCat(folder, "/motley-", uuid, ".lock");
  FileDescriptor file(Open(path));
  if (file.get() < 0) return FileError(errno, "open the lock of a card", path);
  if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return FileError(errno, "lock", path);
    char text[32] = "";
    const ssize_t bytes = pread(file.get(), text, sizeof(text) - 1, 0);
    const std::string holder =
        bytes > 0 ? absl::StrCat("process ", Echo(std::string(text, bytes))) : "a process that just started";
    return absl::AlreadyExistsError(absl::StrCat("another worker (", holder, ") offers it; its lock is ", path));
  }
  const std::string own = absl::StrCat(getpid());
  if (ftruncate(file.get(), 0) != 0 || pwrite(file.get(), own.data(), own.size(), 0) < 0) {
    return FileError(errno, "write", path);
  }
  return CardClaim(std::move(file));
}

}  // namespace motley::worker
