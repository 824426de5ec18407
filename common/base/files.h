// File operations whose errors name the action, the path and the remedy, and whose writes survive a power cut.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace motley {

// The Status of a failed system call: ENOENT is NOT_FOUND, EACCES PERMISSION_DENIED, ENOSPC and EDQUOT RESOURCE_EXHAUSTED, EFBIG
// OUT_OF_RANGE, EEXIST ALREADY_EXISTS, the rest UNAVAILABLE. "cannot read /x: no such file or directory". All that may be
// otherwise later (no right, a full disk, an input or output error) is Fault::kStorage; a wrong path is not. What this machine's
// file system does not know (EINVAL, ENOSYS, EXDEV) is Fault::kNode.
absl::Status FileError(int error, std::string_view action, const std::string& path);

// A file descriptor that closes itself.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd = -1) : fd_(fd) {}
  ~FileDescriptor();
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.Release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  int get() const { return fd_; }
  int Release();

 private:
  int fd_;
};

// INVALID_ARGUMENT "/x is a named pipe; give a regular file": a pipe, a socket or a device would wait, answer for ever or act.
absl::Status NotRegular(unsigned mode, const std::string& path);  // `mode` of stat; OK for a regular file

enum class SymbolicLinks { kFollow, kRefuse };  // what to do when the path's last part is a symbolic link
// A regular file; never waits for another process. INVALID_ARGUMENT says what else it is.
absl::StatusOr<FileDescriptor> OpenForRead(const std::string& path, SymbolicLinks links = SymbolicLinks::kFollow);
// Of a regular file, and no link to one: INVALID_ARGUMENT says what else it is.
absl::StatusOr<int64_t> FileBytes(const std::string& path);
// Both of `name` in an open folder, which is no link; `path` is what errors say.
absl::StatusOr<FileDescriptor> OpenForReadIn(const FileDescriptor& folder, const std::string& name, const std::string& path);
absl::StatusOr<int64_t> FileBytesIn(const FileDescriptor& folder, const std::string& name, const std::string& path);
// Exactly `bytes` bytes at `offset`; DATA_LOSS when the file ends before.
absl::Status ReadAt(const FileDescriptor& file, const std::string& path, int64_t offset, void* out, int64_t bytes);
// The whole file in pieces of at most a mebibyte; stops at the first error that `use` returns.
absl::Status ForEachBlock(const std::string& path, const std::function<absl::Status(std::string_view)>& use);
absl::Status ForEachBlock(const FileDescriptor& file, const std::string& path,
                          const std::function<absl::Status(std::string_view)>& use);
// INVALID_ARGUMENT when it is larger than `limit_bytes`.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, int64_t limit_bytes);
absl::StatusOr<std::string> ReadSmallFile(const FileDescriptor& file, const std::string& path, int64_t limit_bytes);

// A new file. What had the name is replaced, not emptied: it may be somebody else's by a hard link. A writer that was not
// finished removes its file.
class FileWriter {
 public:
  // INVALID_ARGUMENT when the name is taken by anything but a regular file: a link there would lead the writing elsewhere.
  static absl::StatusOr<FileWriter> Create(const std::string& path);
  FileWriter(FileWriter&&) noexcept = default;
  FileWriter& operator=(FileWriter&&) = delete;
  ~FileWriter();
  absl::Status Write(const void* data, int64_t bytes);
  // fsync and close.
  absl::Status Finish();

 private:
  FileWriter(std::string path, FileDescriptor file) : path_(std::move(path)), file_(std::move(file)) {}
  std::string path_;
  FileDescriptor file_;  // released once finished
};

// Whether WriteFileDurably may succeed, asked before long work: the folder is there and may be written, the name is no folder.
absl::Status CheckWritable(const std::string& path);
absl::Status WriteFileDurably(const std::string& path, std::string_view text);
// Whoever reads the file meanwhile sees all of the old one or all of the new one. Mode 0: as the umask leaves it.
absl::Status ReplaceFileDurably(const std::string& path, std::string_view text, mode_t mode = 0);
// fsync of the folder itself: its entries survive a power cut.
absl::Status SyncFolder(const std::string& path);
// Like mkdir -p.
absl::Status MakeFolders(const std::string& path);
// Only the path's last part is made: where a share is not mounted any more the way to it would be made on the wrong disk. That
// part is a folder and no link to one: whoever prepared a link would lead the writing elsewhere. Fault::kStorage: what it lies
// in is not there. INVALID_ARGUMENT: that is no folder.
absl::Status MakeOwnFolder(const std::string& path);
// A folder, too. False where it cannot be known.
bool FileExists(const std::string& path);
// Of the entries of a folder that is open for reading, sorted, without "." and "..". `path` is what errors say.
absl::StatusOr<std::vector<std::string>> NamesIn(FileDescriptor folder, const std::string& path);
// Like rm -r; fine when it is not there.
absl::Status RemoveTree(const std::string& path);

}  // namespace motley
