#include "common/checkpoint/checkpoint_look.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/files.h"

namespace motley {
namespace {

constexpr absl::Duration kBetweenLooks = absl::Milliseconds(50);
constexpr size_t kMostTokenBytes = 256;

// Looks until `seen` or the patience is over; at least once.
template <typename Look>
void LookUntilSeen(absl::Duration patience, Look seen) {
  const SystemClock clock;
  const absl::Duration end = clock.Now() + patience;
  while (!seen() && clock.Now() < end) absl::SleepFor(kBetweenLooks);
}

FileDescriptor OpenFolder(const std::string& folder) {
  return FileDescriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

}  // namespace

absl::Status WriteToken(const std::string& folder, const std::string& text) {
  absl::Status written = MakeOwnFolder(folder);
  if (written.ok()) written = WriteFileDurably(absl::StrCat(folder, "/", kTokenName), absl::StrCat(text, "\n"));
  // The folder, or what it lies in, was there a moment ago.
  return absl::IsNotFound(written) ? WithFault(absl::UnavailableError(written.message()), Fault::kStorage) : written;
}

std::string ReadToken(const std::string& folder, absl::Duration patience) {
  std::string text;
  LookUntilSeen(patience, [&] {
    const FileDescriptor at = OpenFolder(folder);
    const FileDescriptor file(::openat(at.get(), kTokenName, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC));
    struct stat found;
    if (file.get() < 0 || ::fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode)) return false;
    char bytes[kMostTokenBytes];
    const ssize_t got = ::read(file.get(), bytes, sizeof(bytes));
    if (got <= 1 || bytes[got - 1] != '\n') return false;  // it is being written
    text.assign(bytes, static_cast<size_t>(got - 1));
    return true;
  });
  return text;
}

absl::Status RemoveToken(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/", kTokenName);
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  return FileError(errno, "remove", path);
}

std::vector<size_t> FilesNotSeen(const std::string& folder, const std::vector<CheckpointFile>& files, absl::Duration patience) {
  std::vector<size_t> missing;
  LookUntilSeen(patience, [&] {
    missing.clear();
    const FileDescriptor at = OpenFolder(folder);
    for (size_t i = 0; i < files.size(); ++i) {
      struct stat found;
      const bool there = ::fstatat(at.get(), files[i].name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0;
      if (!there || !S_ISREG(found.st_mode) || found.st_size != files[i].bytes) missing.push_back(i);
    }
    return missing.empty();
  });
  return missing;
}

}  // namespace motley
