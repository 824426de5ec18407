#include "common/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"

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
    case EFBIG:
      return absl::StatusCode::kResourceExhausted;
    case EEXIST:
    case ENOTEMPTY:
      return absl::StatusCode::kAlreadyExists;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

}  // namespace

absl::Status FileError(int error, std::string_view action, const std::string& path) {
  return absl::Status(CodeOf(error),
                      absl::StrCat("cannot ", std::string(action), " ", path, ": ", std::generic_category().message(error)));
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

absl::StatusOr<FileDescriptor> OpenForRead(const std::string& path) {
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return FileError(errno, "read", path);
  return file;
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
  std::string text;
  MOTLEY_RETURN_IF_ERROR(ForEachBlock(path, [&](std::string_view block) -> absl::Status {
    text.append(block);
    if (static_cast<int64_t>(text.size()) <= limit_bytes) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(path, " is larger than the ", limit_bytes, " bytes allowed for it"));
  }));
  return text;
}

absl::StatusOr<FileWriter> FileWriter::Create(const std::string& path) {
  FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (file.get() < 0) return FileError(errno, "write", path);
  return FileWriter(path, std::move(file));
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

absl::Status WriteFileDurably(const std::string& path, std::string_view text) {
  MOTLEY_ASSIGN_OR_RETURN(FileWriter writer, FileWriter::Create(path));
  MOTLEY_RETURN_IF_ERROR(writer.Write(text.data(), static_cast<int64_t>(text.size())));
  return writer.Finish();
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

absl::Status RemoveTree(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  return error ? FileError(error.value(), "remove", path) : absl::OkStatus();
}

}  // namespace motley
