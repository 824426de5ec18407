#include "common/data/data_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/beneath.h"
#include "common/base/status_macros.h"

namespace motley {
namespace {

absl::Status InFolder(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("data folder ", path, ": ", std::string(status.message())));
}

bool IsFolder(const FileDescriptor& opened) {
  struct stat found;
  return ::fstat(opened.get(), &found) == 0 && S_ISDIR(found.st_mode);
}

// Of the folder `name` beneath the top (".": itself), which must not be a link: what hidden entries leave of them.
absl::StatusOr<std::vector<std::string>> EntriesOf(const FileDescriptor& top, const std::string& name) {
  MOTLEY_ASSIGN_OR_RETURN(FileDescriptor folder, OpenFileOrFolderBeneath(top, name));
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(folder.get()), ::closedir);
  if (entries == nullptr) return FileError(errno, "list", name);
  folder.Release();  // closed with the entries
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* const entry = ::readdir(entries.get());
    if (entry == nullptr && errno != 0) return FileError(errno, "list", name);
    if (entry == nullptr) return names;
    if (entry->d_name[0] != '.') names.push_back(name == "." ? entry->d_name : absl::StrCat(name, "/", entry->d_name));
  }
}

// Relative to the top. A link to a folder is no folder of the data, and none of its files either.
absl::StatusOr<std::vector<std::string>> FilesOfFolder(const FileDescriptor& top, const std::string& path) {
  std::vector<std::string> files, folders = {"."};
  while (!folders.empty()) {
    const std::string folder = std::move(folders.back());
    folders.pop_back();
    const absl::StatusOr<std::vector<std::string>> entries = EntriesOf(top, folder);
    if (!entries.ok()) return InFolder(path, entries.status());
    for (const std::string& entry : *entries) {
      struct stat found;
      const bool looked = ::fstatat(top.get(), entry.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0;
      if (looked && S_ISDIR(found.st_mode)) {
        folders.push_back(entry);
        continue;
      }
      const absl::StatusOr<FileDescriptor> opened = OpenBeneath(top, entry);
      if (!opened.ok() || !IsFolder(*opened)) files.push_back(entry);  // reading it gives the error
    }
  }
  std::sort(files.begin(), files.end());
  if (files.empty()) return absl::InvalidArgumentError(absl::StrCat("data folder ", path, " holds no file"));
  return files;
}

}  // namespace

absl::StatusOr<FileDescriptor> OpenData(const std::string& path) {
  FileDescriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() >= 0) return folder;
  return errno == ENOTDIR ? OpenForRead(path) : FileError(errno, "read the data", path);
}

absl::Status ForEachDataFile(const FileDescriptor& opened, const std::string& path,
                             const std::function<absl::Status(const std::string& file, std::string_view block)>& use,
                             const std::function<absl::Status(const std::string& file)>& end) {
  if (!IsFolder(opened)) {
    MOTLEY_RETURN_IF_ERROR(ForEachBlock(opened, path, [&](std::string_view block) { return use(path, block); }));
    return end(path);
  }
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesOfFolder(opened, path));
  for (const std::string& file : files) {
    const std::string name = absl::StrCat(path, "/", file);
    const absl::StatusOr<FileDescriptor> data = OpenFileBeneath(opened, file);
    if (!data.ok()) return InFolder(path, data.status());
    MOTLEY_RETURN_IF_ERROR(ForEachBlock(*data, name, [&](std::string_view block) { return use(name, block); }));
    MOTLEY_RETURN_IF_ERROR(end(name));
  }
  return absl::OkStatus();
}

}  // namespace motley
