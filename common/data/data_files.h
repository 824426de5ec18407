// The files of a data path: one file, or those of a folder and its subfolders (hidden ones left out) in byte order of their
// paths, each once, however many names and links it has there. They are read from the descriptor that was opened: the path only
// names them in errors, and who changes what it leads to changes nothing of what is read.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/files.h"

namespace motley {

// Wherever the path leads; what a job names is opened by FileRoots::OpenForRead. NOT_FOUND / PERMISSION_DENIED /
// INVALID_ARGUMENT (neither a regular file nor a folder).
absl::StatusOr<FileDescriptor> OpenData(const std::string& path);

// Opens by its absolute path what a link of the data folder leads to outside of that folder (FileRoots::OpenForRead); without it
// such links are refused.
using OpenBeyond = std::function<absl::StatusOr<FileDescriptor>(const std::string& path)>;

// A file of the data, open for reading.
struct DataFile {
  std::string name;  // within the folder; empty: the data is this one file
  std::string path;  // names it in errors
  FileDescriptor opened;
};

// Gives each file to `use`; stops at the first error that it returns. The files of a folder are opened beneath it:
// PERMISSION_DENIED where a link leads out and `beyond` does not open it. NOT_FOUND: a link to nothing. INVALID_ARGUMENT for a
// folder without a file, and for one of HuggingFace's hub that holds several revisions; of one revision the files of snapshots
// are read, not the blobs that they are links to, nor refs.
absl::Status ForEachDataFile(const FileDescriptor& opened, const std::string& path,
                             const std::function<absl::Status(DataFile file)>& use, const OpenBeyond& beyond = {});

// One of a folder's files by its name, as ForEachDataFile opens it.
absl::StatusOr<FileDescriptor> OpenInDataFolder(const FileDescriptor& folder, const std::string& path, const std::string& name,
                                                const OpenBeyond& beyond);
bool IsDataFolder(const FileDescriptor& opened);
// The same file or folder once more.
absl::StatusOr<FileDescriptor> Again(const FileDescriptor& opened, const std::string& path);

}  // namespace motley
