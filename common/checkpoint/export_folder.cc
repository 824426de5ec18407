#include "common/checkpoint/export_folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <random>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/weights/small_files.h"
#include "common/weights/weights_folder.h"

namespace motley {
namespace {

constexpr char kPartial[] = ".partial";

// "model.safetensors.4711-0a1b2c3d.partial"; a shard's and the index's names begin so, too.
bool IsPartial(const std::string& name) {
  return absl::StartsWith(name, "model") && absl::StrContains(name, ".safetensors.") && absl::EndsWith(name, kPartial);
}

void RemovePartials(const std::string& folder) {
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (IsPartial(entry->path().filename().string())) ::unlink(entry->path().c_str());
  }
}

// A rename that replaces nothing. NFS and some FUSE mounts know none; a link is not made over a file there, either, and where no
// links are, the claim alone holds.
int RenameToNew(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP) return errno;
  if (::link(from.c_str(), to.c_str()) == 0) {
    ::unlink(from.c_str());
    return 0;
  }
  if (errno != EPERM && errno != ENOSYS && errno != EOPNOTSUPP) return errno;
  return ::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

}  // namespace

absl::Status CheckNoModel(const std::string& folder) {
  std::error_code error;
  if (FileExists(folder) && !std::filesystem::is_directory(folder, error)) {
    return absl::AlreadyExistsError(absl::StrCat(folder, " is no folder; give a folder to write into, or remove it"));
  }
  for (const char* name : {kWeightsName, kWeightsIndexName, kCardName}) {  // a card may be one that somebody wrote
    const std::string path = absl::StrCat(folder, "/", name);
    if (FileExists(path)) return absl::AlreadyExistsError(absl::StrCat(path, " exists; choose another folder or remove it"));
  }
  return absl::OkStatus();
}

ExportFolder::ExportFolder(std::string path, FileDescriptor lock)
    : path_(std::move(path)),
      suffix_(absl::StrFormat(".%d-%08x%s", ::getpid(), std::random_device()(), kPartial)),
      lock_(std::move(lock)) {}

absl::StatusOr<ExportFolder> ExportFolder::Claim(const std::string& path) {
  MOTLEY_RETURN_IF_ERROR(CheckNoModel(path));
  const absl::Status made = MakeFolders(path);
  // Something else on the way there: what is missing is nothing that was to be read.
  if (absl::IsNotFound(made)) return absl::AlreadyExistsError(absl::StrCat(made.message(), "; choose another folder"));
  MOTLEY_RETURN_IF_ERROR(made);
  FileDescriptor lock(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock.get() < 0) return FileError(errno, "open the folder", path);
  const bool locked = ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0;
  if (!locked && errno == EWOULDBLOCK) {
    return absl::AlreadyExistsError(
        absl::StrCat("another export writes into ", path, " now; choose another folder, or wait until it has ended"));
  }
  MOTLEY_RETURN_IF_ERROR(CheckNoModel(path));
  // Where folders cannot be locked, as on NFS, they may be somebody's who is at work.
  if (locked) RemovePartials(path);
  return ExportFolder(path, std::move(lock));
}

ExportFolder::~ExportFolder() {
  for (const std::string& name : partials_) ::unlink(absl::StrCat(path_, "/", name, suffix_).c_str());
}

std::string ExportFolder::Partial(const std::string& name) {
  partials_.insert(name);
  return absl::StrCat(path_, "/", name, suffix_);
}

absl::Status ExportFolder::Publish(const std::string& name) {
  const std::string to = absl::StrCat(path_, "/", name);
  const int error = RenameToNew(Partial(name), to);
  if (error == EEXIST) {
    return absl::AlreadyExistsError(absl::StrCat("another export wrote ", to, " meanwhile; choose another folder or remove it"));
  }
  if (error != 0) return FileError(error, "name the exported model", to);
  partials_.erase(name);
  return absl::OkStatus();
}

absl::Status ExportFolder::PublishPart(const std::string& name) {
  const std::string to = absl::StrCat(path_, "/", name);
  if (::rename(Partial(name).c_str(), to.c_str()) != 0) return FileError(errno, "name the exported model", to);
  partials_.erase(name);
  return absl::OkStatus();
}

}  // namespace motley
