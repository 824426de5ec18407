#include "common/base/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/base/accounts.h"
#include "common/base/clean_text.h"
#include "common/base/fault.h"
#include "common/base/status_macros.h"

namespace motley {
namespace {

constexpr int64_t kBlockBytes = 1 << 20;

absl::StatusCode CodeOf(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::StatusCode::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::StatusCode::kPermissionDenied;
    case ENOSPC:
    case EDQUOT:
      return absl::StatusCode::kResourceExhausted;
    case EFBIG:
      return absl::StatusCode::kOutOfRange;
    case EEXIST:
    case ENOTEMPTY:
      return absl::StatusCode::kAlreadyExists;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

// The path names nothing, or something else than was meant: it does so again whenever it is tried.
bool IsWrongPath(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case EEXIST:
    case ENOTEMPTY:
    case ENAMETOOLONG:
    case ELOOP:
      return true;
    default:
      return false;
  }
}

// Whom a right was refused: a service has a user of its own, whom its reader may not think of.
std::string WhoIsRefused(int error) {
  if (error != EACCES && error != EPERM) return "";
  const uid_t uid = ::geteuid();
  const absl::StatusOr<Account> account = AccountOf(uid);
  return account.ok() ? absl::StrCat(" (as user ", CleanLine(account->name), ")") : absl::StrCat(" (as user ", uid, ")");
}

// The file system knows no such call (fsync on some FUSE and 9p mounts, a rename across mounts). Another machine's may.
bool IsOddMount(int error) { return error == EINVAL || error == ENOSYS || error == EXDEV; }

// `name` in `folder`, a descriptor; what errors say is `path`.
absl::StatusOr<FileDescriptor> OpenIn(int folder, const std::string& name, const std::string& path, SymbolicLinks links) {
  const bool follow = links == SymbolicLinks::kFollow;
  // Asked before, because opening a device can act; and after, because the name may have changed hands between.
  struct stat found;
  if (::fstatat(folder, name.c_str(), &found, follow ? 0 : AT_SYMLINK_NOFOLLOW) != 0) return FileError(errno, "read", path);
  MOTLEY_RETURN_IF_ERROR(NotRegular(found.st_mode, path));
  FileDescriptor file(::openat(folder, name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (follow ? 0 : O_NOFOLLOW)));
  if (file.get() < 0 || ::fstat(file.get(), &found) != 0) return FileError(errno, "read", path);
  MOTLEY_RETURN_IF_ERROR(NotRegular(found.st_mode, path));
  return file;
}

absl::StatusOr<int64_t> BytesIn(int folder, const std::string& name, const std::string& path) {
  struct stat status;
  if (::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return FileError(errno, "read", path);
  MOTLEY_RETURN_IF_ERROR(NotRegular(status.st_mode, path));
  return static_cast<int64_t>(status.st_size);
}

}  // namespace

absl::Status FileError(int error, std::string_view action, const std::string& path) {
  const absl::Status status(CodeOf(error), absl::StrCat("cannot ", std::string(action), " ", path, ": ",
                                                        std::generic_category().message(error), WhoIsRefused(error)));
  if (IsWrongPath(error)) return status;
  return WithFault(status, IsOddMount(error) ? Fault::kNode : Fault::kStorage);
}

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = other.Release();
  }
  return *this;
}

int FileDescriptor::Release() { return std::exchange(fd_, -1); }

absl::Status NotRegular(unsigned mode, const std::string& path) {
  if (S_ISREG(mode)) return absl::OkStatus();
  const char* kind = S_ISDIR(mode)    ? "folder"
                     : S_ISLNK(mode)  ? "symbolic link"
                     : S_ISFIFO(mode) ? "named pipe"
                     : S_ISSOCK(mode) ? "socket"
                                      : "device";
  return absl::InvalidArgumentError(absl::StrCat(path, " is a ", kind, "; give a regular file"));
}

absl::StatusOr<FileDescriptor> OpenForRead(const std::string& path, SymbolicLinks links) {
  return OpenIn(AT_FDCWD, path, path, links);
}

absl::StatusOr<int64_t> FileBytes(const std::string& path) { return BytesIn(AT_FDCWD, path, path); }

absl::StatusOr<FileDescriptor> OpenForReadIn(const FileDescriptor& folder, const std::string& name, const std::string& path) {
  return OpenIn(folder.get(), name, path, SymbolicLinks::kRefuse);
}

absl::StatusOr<int64_t> FileBytesIn(const FileDescriptor& folder, const std::string& name, const std::string& path) {
  return BytesIn(folder.get(), name, path);
}

absl::Status ReadAt(const FileDescriptor& file, const std::string& path, int64_t offset, void* out, int64_t bytes) {
  char* to = static_cast<char*>(out);
  while (bytes > 0) {
    const ssize_t got = ::pread(file.get(), to, static_cast<size_t>(bytes), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError(errno, "read", path);
    if (got == 0) return absl::DataLossError(absl::StrCat(path, " ends at byte ", offset, ", ", bytes, " bytes too early"));
    to += got;
    offset += got;
    bytes -= got;
  }
  return absl::OkStatus();
}

absl::Status ForEachBlock(const std::string& path, const std::function<absl::Status(std::string_view)>& use) {
  MOTLEY_ASSIGN_OR_RETURN(const FileDescriptor file, OpenForRead(path));
  return ForEachBlock(file, path, use);
}

absl::Status ForEachBlock(const FileDescriptor& file, const std::string& path,
                          const std::function<absl::Status(std::string_view)>& use) {
  std::vector<char> block(kBlockBytes);
  for (;;) {
    const ssize_t got = ::read(file.get(), block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError(errno, "read", path);
    if (got == 0) return absl::OkStatus();
    MOTLEY_RETURN_IF_ERROR(use(std::string_view(block.data(), static_cast<size_t>(got))));
  }
}

absl::StatusOr<std::string> ReadSmallFile(const std::string& path, int64_t limit_bytes) {
  MOTLEY_ASSIGN_OR_RETURN(const FileDescriptor file, OpenForRead(path));
  return ReadSmallFile(file, path, limit_bytes);
}

absl::StatusOr<std::string> ReadSmallFile(const FileDescriptor& file, const std::string& path, int64_t limit_bytes) {
  std::string text;
  MOTLEY_RETURN_IF_ERROR(ForEachBlock(file, path, [&](std::string_view block) -> absl::Status {
    text.append(block);
    if (static_cast<int64_t>(text.size()) <= limit_bytes) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(path, " is larger than the ", limit_bytes, " bytes allowed for it"));
  }));
  return text;
}

absl::StatusOr<FileWriter> FileWriter::Create(const std::string& path) {
  for (int attempt = 0;; ++attempt) {
    FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (file.get() >= 0) return FileWriter(path, std::move(file));
    if (errno != EEXIST || attempt > 0) return FileError(errno, "write", path);
    struct stat found;
    if (::lstat(path.c_str(), &found) != 0) continue;
    MOTLEY_RETURN_IF_ERROR(NotRegular(found.st_mode, path));
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return FileError(errno, "replace", path);
  }
}

FileWriter::~FileWriter() {
  if (file_.get() >= 0) ::unlink(path_.c_str());
}

absl::Status FileWriter::Write(const void* data, int64_t bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t put = ::write(file_.get(), from, static_cast<size_t>(std::min(bytes, kBlockBytes * 64)));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return FileError(errno, "write", path_);
    from += put;
    bytes -= put;
  }
  return absl::OkStatus();
}

absl::Status FileWriter::Finish() {
  if (::fsync(file_.get()) != 0) return FileError(errno, "write", path_);
  // A late write error of a network file system is only told here.
  if (::close(file_.Release()) != 0) {
    const absl::Status status = FileError(errno, "write", path_);
    ::unlink(path_.c_str());
    return status;
  }
  return absl::OkStatus();
}

absl::Status CheckWritable(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, std::max<size_t>(slash, 1));
  if (::access(folder.c_str(), W_OK | X_OK) != 0) return FileError(errno, "write", path);
  struct stat found;
  return ::lstat(path.c_str(), &found) == 0 ? NotRegular(found.st_mode, path) : absl::OkStatus();
}

absl::Status WriteFileDurably(const std::string& path, std::string_view text) {
  MOTLEY_ASSIGN_OR_RETURN(FileWriter writer, FileWriter::Create(path));
  MOTLEY_RETURN_IF_ERROR(writer.Write(text.data(), static_cast<int64_t>(text.size())));
  return writer.Finish();
}

absl::Status ReplaceFileDurably(const std::string& path, std::string_view text, mode_t mode) {
  const std::string partial = absl::StrCat(path, ".", getpid(), ".partial");
  MOTLEY_ASSIGN_OR_RETURN(FileWriter writer, FileWriter::Create(partial));
  absl::Status status;
  if (mode != 0 && chmod(partial.c_str(), mode) != 0) status = FileError(errno, "set the mode of", partial);
  if (status.ok()) status = writer.Write(text.data(), static_cast<int64_t>(text.size()));
  if (status.ok()) status = writer.Finish();
  if (status.ok() && rename(partial.c_str(), path.c_str()) != 0) status = FileError(errno, "write", path);
  if (status.ok()) return SyncFolder(std::filesystem::absolute(path).parent_path().string());
  unlink(partial.c_str());
  return status;
}

absl::Status SyncFolder(const std::string& path) {
  const FileDescriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0 || ::fsync(folder.get()) != 0) return FileError(errno, "sync the folder", path);
  return absl::OkStatus();
}

absl::Status MakeFolders(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  return error ? FileError(error.value(), "make the folder", path) : absl::OkStatus();
}

absl::Status MakeOwnFolder(const std::string& path) {
  const std::filesystem::path whole(path);
  const std::string parent = whole.parent_path().string(), name = whole.filename().string();
  const FileDescriptor folder(::open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0 && errno == ENOENT) {
    return WithFault(absl::UnavailableError(absl::StrCat(
                         "folder ", parent, " is not there; mount its file system here, or make it again if it was removed")),
                     Fault::kStorage);
  }
  if (folder.get() < 0 && errno == ENOTDIR) return absl::InvalidArgumentError(absl::StrCat(parent, " is no folder"));
  if (folder.get() < 0) return FileError(errno, "open the folder", parent);
  if (::mkdirat(folder.get(), name.c_str(), 0777) != 0 && errno != EEXIST) return FileError(errno, "make the folder", path);
  struct stat found;
  if (::fstatat(folder.get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) return FileError(errno, "make the folder", path);
  if (S_ISDIR(found.st_mode)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(path, " is a ", S_ISLNK(found.st_mode) ? "symbolic link" : "file",
                                                 " where a folder was to be made; remove it"));
}

bool FileExists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

absl::StatusOr<std::vector<std::string>> NamesIn(FileDescriptor folder, const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(folder.get()), ::closedir);
  if (entries == nullptr) return FileError(errno, "list", path);
  folder.Release();  // closed with the entries
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* const entry = ::readdir(entries.get());
    if (entry == nullptr && errno != 0) return FileError(errno, "list", path);
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status RemoveTree(const std::string& path) {
  constexpr int kMostTries = 5;  // others may remove parts of it, or add some, meanwhile
  std::error_code error;
  for (int tries = 0; tries < kMostTries; ++tries) {
    std::filesystem::remove_all(path, error);
    if (error.value() != ENOENT && error.value() != ENOTEMPTY) break;
  }
  return error ? FileError(error.value(), "remove", path) : absl::OkStatus();
}

}  // namespace motley
