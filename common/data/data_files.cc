#include "common/data/data_files.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/beneath.h"
#include "common/base/clean_text.h"
#include "common/base/status_macros.h"
#include "common/data/hub_folder.h"

namespace motley {
namespace {

absl::Status InFolder(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("data folder ", path, ": ", std::string(status.message())));
}

// Of the folder `name` beneath the top (".": itself), which must not be a link: what hidden entries leave of them.
absl::StatusOr<std::vector<std::string>> EntriesOf(const FileDescriptor& top, const std::string& name) {
  MOTLEY_ASSIGN_OR_RETURN(FileDescriptor folder, OpenFileOrFolderBeneath(top, name));
  MOTLEY_ASSIGN_OR_RETURN(std::vector<std::string> names, NamesIn(std::move(folder), name));
  std::erase_if(names, [](const std::string& entry) { return entry.starts_with('.'); });
  return names;
}

std::string Below(const std::string& folder, const std::string& entry) {
  return folder == "." ? entry : absl::StrCat(folder, "/", entry);
}

// What of the folder's entries may hold data. Of a download of the hub a blob and the link to it are one file, and its name is
// the link's.
absl::StatusOr<std::vector<std::string>> DataEntriesOf(const FileDescriptor& top, const std::string& path,
                                                       const std::string& folder) {
  MOTLEY_ASSIGN_OR_RETURN(std::vector<std::string> names, EntriesOf(top, folder));
  HubFolder hub{.names = names, .blobs = {}, .revisions = {}};
  // Where one of them is no folder, it is no download.
  if (const auto blobs = EntriesOf(top, Below(folder, "blobs")); blobs.ok()) hub.blobs = *blobs;
  if (hub.blobs.empty()) return names;
  if (const auto revisions = EntriesOf(top, Below(folder, "snapshots")); revisions.ok()) hub.revisions = *revisions;
  if (!IsHubFolder(hub)) return names;
  MOTLEY_RETURN_IF_ERROR(CheckOneRevision(folder == "." ? path : absl::StrCat(path, "/", folder), hub));
  names.erase(std::remove_if(names.begin(), names.end(), IsHubsOwn), names.end());
  return names;
}

// Relative to the top. A link to a folder is no folder of the data, and none of its files either.
absl::StatusOr<std::vector<std::string>> FilesOfFolder(const FileDescriptor& top, const std::string& path) {
  std::vector<std::string> files, folders = {"."};
  while (!folders.empty()) {
    const std::string folder = std::move(folders.back());
    folders.pop_back();
    const absl::StatusOr<std::vector<std::string>> entries = DataEntriesOf(top, path, folder);
    if (!entries.ok()) return absl::IsInvalidArgument(entries.status()) ? entries.status() : InFolder(path, entries.status());
    for (const std::string& name : *entries) {
      const std::string entry = Below(folder, name);
      struct stat found;
      const bool looked = ::fstatat(top.get(), entry.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0;
      if (looked && S_ISDIR(found.st_mode)) {
        folders.push_back(entry);
        continue;
      }
      const absl::StatusOr<FileDescriptor> opened = OpenBeneath(top, entry);
      if (!opened.ok() || !IsDataFolder(*opened)) files.push_back(entry);  // reading it gives the error
    }
  }
  std::sort(files.begin(), files.end());
  if (files.empty()) return absl::InvalidArgumentError(absl::StrCat("data folder ", path, " holds no file"));
  return files;
}

// What the link `file` says; empty: it is none.
std::string LinkTarget(const FileDescriptor& top, const std::string& file) {
  std::string target(PATH_MAX, '\0');
  const ssize_t bytes = ::readlinkat(top.get(), file.c_str(), target.data(), target.size());
  target.resize(bytes > 0 ? static_cast<size_t>(bytes) : 0);
  return target;
}

// The same file has the same number, whatever leads to it.
using FileNumber = std::pair<dev_t, ino_t>;
std::optional<FileNumber> NumberOf(const FileDescriptor& opened) {
  struct stat found;
  if (::fstat(opened.get(), &found) != 0) return std::nullopt;
  return FileNumber(found.st_dev, found.st_ino);
}

}  // namespace

bool IsDataFolder(const FileDescriptor& opened) {
  struct stat found;
  return ::fstat(opened.get(), &found) == 0 && S_ISDIR(found.st_mode);
}

absl::StatusOr<FileDescriptor> Again(const FileDescriptor& opened, const std::string& path) {
  FileDescriptor again(::fcntl(opened.get(), F_DUPFD_CLOEXEC, 0));
  if (again.get() < 0) return FileError(errno, "read the data", path);
  return again;
}

// Also where it is a link to one outside of the folder that `beyond` opens.
absl::StatusOr<FileDescriptor> OpenInDataFolder(const FileDescriptor& folder, const std::string& path, const std::string& name,
                                                const OpenBeyond& beyond) {
  absl::StatusOr<FileDescriptor> opened = OpenFileBeneath(folder, name);
  if (opened.ok()) return opened;
  const std::string target = LinkTarget(folder, name);
  if (target.empty()) return InFolder(path, opened.status());
  const std::string link = absl::StrCat(Quoted(name), " is a link to ", Quoted(target));
  // Only where the link itself leads, never what else its way may be: a root is opened anew.
  if (absl::IsPermissionDenied(opened.status()) && beyond) {
    opened =
        beyond(target.front() == '/' ? std::filesystem::path(target).lexically_normal().string() : absl::StrCat(path, "/", name));
    if (opened.ok() && IsDataFolder(*opened)) {
      return InFolder(path, absl::InvalidArgumentError(absl::StrCat(link,
                                                                    ", a folder outside of it; put a copy there, or give that "
                                                                    "folder as data.path")));
    }
  }
  if (absl::IsNotFound(opened.status())) {
    return InFolder(path,
                    absl::NotFoundError(absl::StrCat(link, ", where nothing is; download or copy it again, or remove the link")));
  }
  if (!opened.ok()) return InFolder(path, opened.status());
  return opened;
}

absl::StatusOr<FileDescriptor> OpenData(const std::string& path) {
  FileDescriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() >= 0) return folder;
  return errno == ENOTDIR ? OpenForRead(path) : FileError(errno, "read the data", path);
}

absl::Status ForEachDataFile(const FileDescriptor& opened, const std::string& path,
                             const std::function<absl::Status(DataFile file)>& use, const OpenBeyond& beyond) {
  if (!IsDataFolder(opened)) {
    MOTLEY_ASSIGN_OR_RETURN(FileDescriptor again, Again(opened, path));
    return use({"", path, std::move(again)});
  }
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesOfFolder(opened, path));
  std::set<FileNumber> seen;
  for (const std::string& file : files) {
    MOTLEY_ASSIGN_OR_RETURN(FileDescriptor data, OpenInDataFolder(opened, path, file, beyond));
    if (const auto number = NumberOf(data); number && !seen.insert(*number).second) continue;
    MOTLEY_RETURN_IF_ERROR(use({file, absl::StrCat(path, "/", file), std::move(data)}));
  }
  return absl::OkStatus();
}

}  // namespace motley
