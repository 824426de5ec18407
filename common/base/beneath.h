// Opening what a job names, where whoever named it must not lead the program out of the folders that this node gives to jobs.
// docs/use/worker.md, "Files".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/files.h"

namespace motley {

// A path as its letters go: absolute, no part "..", no NUL and no control character. INVALID_ARGUMENT begins with `name`.
absl::Status CheckPath(std::string_view name, const std::string& path);

enum class Resolver {
  kKernel,  // openat2: links are followed as long as they stay beneath the folder; absolute ones do not
  kParts,   // part by part, for kernels without openat2: no link is followed
};

// `path` (relative, "." for the folder itself) beneath the open folder, without its contents (O_PATH). NOT_FOUND, or
// PERMISSION_DENIED where a link leads out. kKernel becomes kParts by itself where the kernel lacks openat2.
absl::StatusOr<FileDescriptor> OpenBeneath(const FileDescriptor& folder, const std::string& path,
                                           Resolver resolver = Resolver::kKernel);
// The same of a regular file, for reading; never waits for another process. INVALID_ARGUMENT says what else it is.
absl::StatusOr<FileDescriptor> OpenFileBeneath(const FileDescriptor& folder, const std::string& path,
                                               Resolver resolver = Resolver::kKernel);
// The same of a regular file or of a folder, for reading (of a folder: its entries, and what is opened beneath it).
absl::StatusOr<FileDescriptor> OpenFileOrFolderBeneath(const FileDescriptor& folder, const std::string& path,
                                                       Resolver resolver = Resolver::kKernel);
// The folder `path` beneath `folder`; what is missing of it is made.
absl::StatusOr<FileDescriptor> MakeFolderBeneath(const FileDescriptor& folder, const std::string& path,
                                                 Resolver resolver = Resolver::kKernel);

// The folders beneath which a node lets jobs read and write. Thread-safe; each call looks at the file system anew.
class FileRoots {
 public:
  explicit FileRoots(std::vector<std::string> roots) : roots_(std::move(roots)) {}

  // Each absolute and without ".."; existence is asked at use, because a file system may be mounted later.
  static absl::Status Validate(const std::vector<std::string>& roots);

  // A sentence for each that is no folder now: files beneath it are not found until it is one.
  std::vector<std::string> Missing() const;

  // The path's letters lie beneath a root; looks at no file. The errors of Open but NOT_FOUND.
  absl::Status Covers(std::string_view name, const std::string& path) const;
  // `path` lies beneath a root, links included. FAILED_PRECONDITION without roots: names the key to set. PERMISSION_DENIED
  // beneath none: names the roots. NOT_FOUND where there is nothing. Errors begin with `name`, the job's key;
  // Fault::kStorage: of the file system, and it may be otherwise later (FileError).
  absl::StatusOr<FileDescriptor> Open(std::string_view name, const std::string& path) const;
  // The same of a regular file or a folder, for reading. Whoever uses it uses what was looked at, whatever the path names later.
  absl::StatusOr<FileDescriptor> OpenForRead(std::string_view name, const std::string& path) const;
  // The same of a folder that is made where it is missing.
  absl::StatusOr<FileDescriptor> MakeFolder(std::string_view name, const std::string& path) const;

  // The root above the path, as Covers looks.
  absl::StatusOr<std::string> RootOf(std::string_view name, const std::string& path) const;
  const std::vector<std::string>& paths() const { return roots_; }

 private:
  using Action = absl::StatusOr<FileDescriptor> (*)(const FileDescriptor&, const std::string&, Resolver);
  absl::StatusOr<FileDescriptor> BeneathOne(std::string_view name, const std::string& path, Action action) const;

  std::vector<std::string> roots_;
};

}  // namespace motley
