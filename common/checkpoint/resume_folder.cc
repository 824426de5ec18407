#include "common/checkpoint/resume_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_manifest.h"

namespace motley {
namespace {

// Of a manifest's file: beside the manifest, and not that one.
absl::Status CheckFileName(const std::string& folder, const std::string& name) {
  const bool beside = !name.empty() && name.find_first_of(std::string_view("/\0", 2)) == std::string::npos && name != "." &&
                      name != ".." && name != kManifestName;
  if (beside) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(folder, ": the manifest names a file '", CleanLine(name), "' that cannot lie beside it"));
}

// Whether `name` is there as a file of that size, and no link to one.
bool IsFileOf(const FileDescriptor& at, const std::string& name, int64_t bytes) {
  struct stat found;
  return ::fstatat(at.get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(found.st_mode) && found.st_size == bytes;
}

// False: the folder does not have the file, or not any more.
absl::StatusOr<bool> LinkFile(const FileDescriptor& from, const FileDescriptor& to, const CheckpointFile& file,
                              const std::string& path) {
  if (!IsFileOf(from, file.name, file.bytes)) return false;
  if (::linkat(from.get(), file.name.c_str(), to.get(), file.name.c_str(), 0) != 0) {
    return errno == ENOENT ? absl::StatusOr<bool>(false) : FileError(errno, "link to", path);
  }
  // Ranks write where it came from: what was looked at may not be what was linked.
  if (IsFileOf(to, file.name, file.bytes)) return true;
  if (::unlinkat(to.get(), file.name.c_str(), 0) != 0) return FileError(errno, "remove the link to", path);
  return false;
}

struct OwnFolder {
  FileDescriptor at;
  std::string path;
};

absl::StatusOr<std::vector<OwnFolder>> OpenOwn(const std::vector<std::string>& paths) {
  std::vector<OwnFolder> folders;
  for (const std::string& path : paths) {
    FileDescriptor at(::open(path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (at.get() >= 0) {
      folders.push_back({std::move(at), path});
    } else if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP) {
      return FileError(errno, "open the folder", path);
    }
  }
  return folders;
}

}  // namespace

int64_t BytesOfBlock(const CheckpointFile& file, int64_t block) {
  return std::min(kCheckpointBlockBytes, file.bytes - block * kCheckpointBlockBytes);
}

std::vector<int64_t> AllBlocks(const CheckpointFile& file) {
  std::vector<int64_t> blocks(file.blocks.size());
  std::iota(blocks.begin(), blocks.end(), 0);
  return blocks;
}

absl::StatusOr<std::vector<int64_t>> AlteredBlocks(const FileDescriptor& opened, const std::string& path,
                                                   const CheckpointFile& file, const std::vector<int64_t>& blocks,
                                                   const std::function<bool()>& stopped) {
  std::vector<int64_t> altered;
  std::string bytes;
  for (const int64_t block : blocks) {
    if (stopped()) return absl::CancelledError("stopped");
    const int64_t begin = block * kCheckpointBlockBytes;
    bytes.resize(static_cast<size_t>(BytesOfBlock(file, block)));
    const off_t data = ::lseek(opened.get(), begin, SEEK_DATA);
    const bool hole = data < 0 ? errno == ENXIO : data >= begin + static_cast<off_t>(bytes.size());
    const std::string& wanted = file.blocks[static_cast<size_t>(block)];
    if (hole) {
      // A file system that finds zeros makes holes of them.
      static const auto& zeros = *new std::string(Sha256Hex(std::string(kCheckpointBlockBytes, '\0')));
      const bool whole = static_cast<int64_t>(bytes.size()) == kCheckpointBlockBytes;
      if ((whole ? zeros : Sha256Hex(std::string(bytes.size(), '\0'))) != wanted) altered.push_back(block);
      continue;
    }
    // A sector that cannot be read is as good as altered.
    const bool read = ReadAt(opened, path, begin, bytes.data(), static_cast<int64_t>(bytes.size())).ok();
    if (!read || Sha256Hex(bytes) != wanted) altered.push_back(block);
  }
  return altered;
}

absl::StatusOr<ResumeFile> ResumeFile::GoOn(const std::string& folder, const CheckpointFile& file) {
  MOTLEY_RETURN_IF_ERROR(CheckFileName(folder, file.name));
  std::string path = absl::StrCat(folder, "/", file.name);
  FileDescriptor opened(::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat found {};
  const bool is_it =
      opened.get() >= 0 && ::fstat(opened.get(), &found) == 0 && S_ISREG(found.st_mode) && found.st_size == file.bytes;
  return is_it ? ResumeFile(file, std::move(path), std::move(opened)) : Make(folder, file);
}

absl::StatusOr<ResumeFile> ResumeFile::Make(const std::string& folder, const CheckpointFile& file) {
  MOTLEY_RETURN_IF_ERROR(CheckFileName(folder, file.name));
  std::string path = absl::StrCat(folder, "/", file.name);
  MOTLEY_RETURN_IF_ERROR(RemoveTree(path));
  FileDescriptor opened(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (opened.get() < 0 || ::ftruncate(opened.get(), file.bytes) != 0) return FileError(errno, "make", path);
  return ResumeFile(file, std::move(path), std::move(opened));
}

absl::Status ResumeFile::Put(int64_t block, std::string_view bytes) {
  const bool there = block >= 0 && block < static_cast<int64_t>(file_.blocks.size());
  if (!there) return absl::DataLossError(absl::StrCat(path_, " has no block ", block, "; it has ", file_.blocks.size()));
  if (static_cast<int64_t>(bytes.size()) != BytesOfBlock(file_, block) ||
      Sha256Hex(bytes) != file_.blocks[static_cast<size_t>(block)]) {
    return absl::DataLossError(absl::StrCat("block ", block, " of ", path_, " came altered: its digest does not match"));
  }
  int64_t at = block * kCheckpointBlockBytes;
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(opened_.get(), bytes.data(), bytes.size(), at);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return FileError(errno, "write", path_);
    bytes.remove_prefix(static_cast<size_t>(put));
    at += put;
  }
  return absl::OkStatus();
}

absl::Status ResumeFile::Finish() { return ::fsync(opened_.get()) == 0 ? absl::OkStatus() : FileError(errno, "write", path_); }

absl::StatusOr<std::vector<size_t>> BeginResumeFolder(const std::string& folder, const CheckpointManifest& manifest,
                                                      const std::string& text, const std::vector<std::string>& own_folders) {
  for (const CheckpointFile& file : manifest.files) MOTLEY_RETURN_IF_ERROR(CheckFileName(folder, file.name));
  MOTLEY_RETURN_IF_ERROR(RemoveTree(folder));
  MOTLEY_RETURN_IF_ERROR(MakeFolders(folder));
  const FileDescriptor at(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (at.get() < 0) return FileError(errno, "open the folder", folder);
  MOTLEY_RETURN_IF_ERROR(WriteFileDurably(absl::StrCat(folder, "/", kManifestName), text));
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<OwnFolder> own, OpenOwn(own_folders));
  std::vector<size_t> others;
  for (size_t f = 0; f < manifest.files.size(); ++f) {
    const CheckpointFile& file = manifest.files[f];
    bool linked = false;
    for (size_t i = 0; i < own.size() && !linked; ++i) {
      MOTLEY_ASSIGN_OR_RETURN(linked, LinkFile(own[i].at, at, file, absl::StrCat(own[i].path, "/", file.name)));
    }
    if (!linked) others.push_back(f);
  }
  return others;
}

}  // namespace motley
