#include "common/base/beneath.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/clean_text.h"
#include "common/base/fault.h"
#include "common/base/status_macros.h"

namespace motley {
namespace {

// A rename elsewhere in the tree makes the kernel give up rather than guess.
constexpr int kMostAttempts = 100;

std::string Cat(std::string_view name, const std::string& rest) { return absl::StrCat(std::string(name), ": ", rest); }

// The parts of a relative path; empty ones and "." say nothing.
std::vector<std::string> PartsOf(const std::string& path) {
  std::vector<std::string> parts = absl::StrSplit(path, '/', absl::SkipEmpty());
  parts.erase(std::remove(parts.begin(), parts.end(), "."), parts.end());
  return parts;
}

// -1 with errno.
int OpenAt2(int folder, const std::string& path, uint64_t flags) {
  struct open_how how = {};
  how.flags = flags | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  for (int attempt = 0;; ++attempt) {
    const long fd = ::syscall(SYS_openat2, folder, path.c_str(), &how, sizeof(how));
    if (fd >= 0 || errno != EAGAIN || attempt == kMostAttempts) return static_cast<int>(fd);
  }
}

// As if it were not there: seccomp filters that do not know the call answer EPERM.
bool LacksOpenAt2(int error) { return error == ENOSYS || error == EPERM; }

// The last part with `flags`.
absl::StatusOr<FileDescriptor> OpenParts(const FileDescriptor& folder, const std::string& path, int flags) {
  const std::vector<std::string> parts = PartsOf(path);
  FileDescriptor at(::openat(folder.get(), ".", (parts.empty() ? flags : O_PATH) | O_DIRECTORY | O_CLOEXEC));
  if (at.get() < 0) return FileError(errno, "open", path);
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string& part = parts[i];
    if (part == "..") return absl::PermissionDeniedError(absl::StrCat(Quoted(path), " leads out of its folder by '..'"));
    FileDescriptor next(::openat(at.get(), part.c_str(), (i + 1 < parts.size() ? O_PATH : flags) | O_NOFOLLOW | O_CLOEXEC));
    struct stat found;
    if (next.get() < 0 || ::fstat(next.get(), &found) != 0) return FileError(errno, "open", path);
    if (S_ISLNK(found.st_mode)) {
      return absl::PermissionDeniedError(
          absl::StrCat(Quoted(path), ": ", Quoted(part), " is a symbolic link, which this kernel cannot follow safely"));
    }
    at = std::move(next);
  }
  return at;
}

absl::StatusOr<FileDescriptor> Resolve(const FileDescriptor& folder, const std::string& path, int flags, Resolver resolver) {
  if (resolver == Resolver::kKernel) {
    FileDescriptor file(OpenAt2(folder.get(), path, static_cast<uint64_t>(flags)));
    if (file.get() >= 0) return file;
    if (errno == EXDEV || errno == ELOOP) {
      return absl::PermissionDeniedError(absl::StrCat(Quoted(path), " leads out of its folder by a link or '..'"));
    }
    if (!LacksOpenAt2(errno)) return FileError(errno, "open", path);
  }
  return OpenParts(folder, path, flags);
}

// For reading, where `wrong` has nothing against its mode.
absl::StatusOr<FileDescriptor> OpenLookedAt(const FileDescriptor& folder, const std::string& path, Resolver resolver,
                                            absl::Status (*wrong)(unsigned mode, const std::string& path)) {
  // Looked at before it is opened, because opening a device can act; and after, because the name may have changed hands.
  FileDescriptor file;
  for (const int flags : {O_PATH, O_RDONLY | O_NONBLOCK | O_NOCTTY}) {
    MOTLEY_ASSIGN_OR_RETURN(file, Resolve(folder, path, flags, resolver));
    struct stat found;
    if (::fstat(file.get(), &found) != 0) return FileError(errno, "read", path);
    MOTLEY_RETURN_IF_ERROR(wrong(found.st_mode, path));
  }
  return file;
}

}  // namespace

absl::Status CheckPath(std::string_view name, const std::string& path) {
  const auto wrong = [&](const char* what) {
    return absl::InvalidArgumentError(absl::StrCat(std::string(name), " ", what, ", got ", Quoted(path)));
  };
  if (path.empty() || path.front() != '/') return wrong("must be an absolute path");
  if (std::any_of(path.begin(), path.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; })) {
    return wrong("must not hold control characters");
  }
  const std::vector<std::string> parts = PartsOf(path);
  if (std::find(parts.begin(), parts.end(), "..") != parts.end()) return wrong("must not hold '..'");
  return absl::OkStatus();
}

absl::StatusOr<FileDescriptor> OpenBeneath(const FileDescriptor& folder, const std::string& path, Resolver resolver) {
  return Resolve(folder, path, O_PATH, resolver);
}

absl::StatusOr<FileDescriptor> OpenFileBeneath(const FileDescriptor& folder, const std::string& path, Resolver resolver) {
  return OpenLookedAt(folder, path, resolver, NotRegular);
}

absl::StatusOr<FileDescriptor> OpenFileOrFolderBeneath(const FileDescriptor& folder, const std::string& path, Resolver resolver) {
  return OpenLookedAt(folder, path, resolver, [](unsigned mode, const std::string& name) {
    return S_ISDIR(mode) ? absl::OkStatus() : NotRegular(mode, name);
  });
}

absl::StatusOr<FileDescriptor> MakeFolderBeneath(const FileDescriptor& folder, const std::string& path, Resolver resolver) {
  MOTLEY_ASSIGN_OR_RETURN(FileDescriptor at, OpenBeneath(folder, ".", resolver));
  std::string so_far = ".";
  for (const std::string& part : PartsOf(path)) {
    absl::StrAppend(&so_far, "/", part);
    // Always from the top: a link of the way may point to its side, which is beneath the top but not beneath its parent.
    absl::StatusOr<FileDescriptor> next = OpenBeneath(folder, so_far, resolver);
    if (absl::IsNotFound(next.status())) {
      if (::mkdirat(at.get(), part.c_str(), 0777) != 0 && errno != EEXIST) return FileError(errno, "make the folder", path);
      next = OpenBeneath(folder, so_far, resolver);
    }
    if (!next.ok()) return next;
    at = *std::move(next);
  }
  struct stat found;
  if (::fstat(at.get(), &found) != 0) return FileError(errno, "open", path);
  if (!S_ISDIR(found.st_mode)) return FileError(ENOTDIR, "open the folder", path);
  return at;
}

absl::Status FileRoots::Validate(const std::vector<std::string>& roots) {
  for (const std::string& root : roots) {
    MOTLEY_RETURN_IF_ERROR(CheckPath("files.roots", root));
    if (PartsOf(root).empty())
      return absl::InvalidArgumentError("files.roots must not hold '/': list the folders that jobs may use");
  }
  return absl::OkStatus();
}

std::vector<std::string> FileRoots::Missing() const {
  std::vector<std::string> missing;
  for (const std::string& root : roots_) {
    const FileDescriptor folder(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (folder.get() >= 0) continue;
    const absl::Status status = FileError(errno, "open the root of files.roots", root);
    missing.push_back(absl::StrCat(status.message(), "; jobs find nothing beneath it until it is there"));
  }
  return missing;
}

absl::StatusOr<std::string> FileRoots::RootOf(std::string_view name, const std::string& path) const {
  if (roots_.empty()) {
    return absl::FailedPreconditionError(
        Cat(name, absl::StrCat("this node gives no folder to jobs; set roots in [files] of the worker's configuration so that ",
                               Quoted(path), " lies beneath one")));
  }
  MOTLEY_RETURN_IF_ERROR(CheckPath(name, path));
  const std::vector<std::string> parts = PartsOf(path);
  for (const std::string& root : roots_) {
    const std::vector<std::string> top = PartsOf(root);
    if (top.size() <= parts.size() && std::equal(top.begin(), top.end(), parts.begin())) return root;
  }
  return absl::PermissionDeniedError(Cat(name, absl::StrCat(Quoted(path), " lies beneath none of this node's folders for jobs: ",
                                                            absl::StrJoin(roots_, ", "), " (roots in [files] of the worker)")));
}

absl::Status FileRoots::Covers(std::string_view name, const std::string& path) const { return RootOf(name, path).status(); }

absl::StatusOr<FileDescriptor> FileRoots::BeneathOne(std::string_view name, const std::string& path, Action action) const {
  MOTLEY_ASSIGN_OR_RETURN(const std::string root, RootOf(name, path));
  const FileDescriptor folder(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0) return FileError(errno, "open the root of files.roots", root);
  const std::vector<std::string> parts = PartsOf(path);
  const std::vector<std::string> rest(parts.begin() + static_cast<int64_t>(PartsOf(root).size()), parts.end());
  absl::StatusOr<FileDescriptor> opened = action(folder, rest.empty() ? "." : absl::StrJoin(rest, "/"), Resolver::kKernel);
  if (opened.ok()) return opened;
  const absl::Status& error = opened.status();
  return WithFault(absl::Status(error.code(), Cat(name, absl::StrCat(Quoted(path), ": ", std::string(error.message())))),
                   FaultOf(error));
}

absl::StatusOr<FileDescriptor> FileRoots::Open(std::string_view name, const std::string& path) const {
  return BeneathOne(name, path, OpenBeneath);
}

absl::StatusOr<FileDescriptor> FileRoots::OpenForRead(std::string_view name, const std::string& path) const {
  return BeneathOne(name, path, OpenFileOrFolderBeneath);
}

absl::StatusOr<FileDescriptor> FileRoots::MakeFolder(std::string_view name, const std::string& path) const {
  return BeneathOne(name, path, MakeFolderBeneath);
}

}  // namespace motley
