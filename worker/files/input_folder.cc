#include "worker/files/input_folder.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/beneath.h"
#include "common/base/clean_text.h"
#include "common/base/count.h"
#include "common/base/fault.h"
#include "common/base/status_macros.h"

namespace motley::worker {
namespace {

namespace fs = std::filesystem;

constexpr char kListSuffix[] = ".json";
constexpr int64_t kKeptFreePart = 10;  // of the file system
constexpr absl::Duration kWantedFor = absl::Minutes(10);

int64_t FreeBytes(const std::string& local) {
  std::error_code error;
  const fs::space_info space = fs::space(local, error);
  if (error) return 0;
  return static_cast<int64_t>(space.available) - static_cast<int64_t>(space.capacity) / kKeptFreePart;
}

// Ids of what lies there, the oldest first.
std::vector<std::string> InputsByAge(const std::string& local) {
  std::vector<std::pair<int64_t, std::string>> found;
  std::error_code error;
  for (fs::directory_iterator entry(InputsFolder(local), error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    absl::string_view id = name;
    (void)(absl::ConsumeSuffix(&id, kListSuffix) || absl::ConsumeSuffix(&id, kPartOfInputSuffix));
    struct stat at {};
    if (IsInputId(std::string(id)) && ::lstat(entry->path().c_str(), &at) == 0)
      found.emplace_back(at.st_mtim.tv_sec, std::string(id));
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> ids;
  for (auto& [time, id] : found) {
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(std::move(id));
  }
  return ids;
}

bool IsWanted(const std::string& local, const std::string& id) {
  struct stat at {};
  for (const std::string& path : {InputListPath(local, id), PartOfInput(local, id)}) {
    if (::lstat(path.c_str(), &at) == 0 && absl::Now() - absl::FromTimeT(at.st_mtim.tv_sec) < kWantedFor) return true;
  }
  return false;
}

absl::Status RemoveInput(const std::string& local, const std::string& id) {
  // First what says that it is whole.
  MOTLEY_RETURN_IF_ERROR(RemoveTree(InputListPath(local, id)));
  MOTLEY_RETURN_IF_ERROR(RemoveTree(absl::StrCat(InputsFolder(local), "/", id)));
  return RemoveTree(PartOfInput(local, id));
}

absl::StatusOr<FileDescriptor> OpenOfInput(const std::string& local, const std::string& id, const std::string& file,
                                           const std::string& beneath) {
  if (!IsInputId(id)) return absl::InvalidArgumentError(absl::StrCat(Quoted(id), " is no input's id"));
  const absl::Status nothing =
      absl::NotFoundError(absl::StrCat(file.empty() ? "the list" : CleanLine(file), " of input ", id, " is not here"));
  if (!file.empty()) MOTLEY_RETURN_IF_ERROR(CheckPath("a file of an input", absl::StrCat("/", file)));
  const FileDescriptor at(::open(InputsFolder(local).c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (at.get() < 0) {
    if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP) return nothing;
    return FileError(errno, "open the inputs of", "this node");
  }
  absl::StatusOr<FileDescriptor> opened = OpenFileBeneath(at, beneath, Resolver::kParts);
  return opened.ok() || FaultOf(opened.status()) == Fault::kStorage ? std::move(opened) : nothing;
}

}  // namespace

int64_t BytesOnDisk(const std::string& path) {
  struct stat at {};
  int64_t bytes = ::lstat(path.c_str(), &at) == 0 ? int64_t{at.st_blocks} * 512 : 0;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    if (::lstat(entry->path().c_str(), &at) == 0) bytes += int64_t{at.st_blocks} * 512;
  }
  return bytes;
}

std::string InputsFolder(const std::string& local) { return absl::StrCat(local, "/inputs"); }
std::string LocalPathOf(const std::string& local, const JobInput& input) {
  return absl::StrCat(InputsFolder(local), "/", input.id, "/", input.name);
}
std::string InputListPath(const std::string& local, const std::string& id) {
  return absl::StrCat(InputsFolder(local), "/", id, kListSuffix);
}
std::string PartOfInput(const std::string& local, const std::string& id) {
  return absl::StrCat(InputsFolder(local), "/", id, kPartOfInputSuffix);
}

std::vector<std::string> WholeInputs(const std::string& local, const std::vector<std::string>& ids) {
  std::vector<std::string> whole;
  for (const std::string& id : ids) {
    if (IsInputId(id) && FileExists(InputListPath(local, id)) && FileExists(absl::StrCat(InputsFolder(local), "/", id))) {
      whole.push_back(id);
    }
  }
  return whole;
}

absl::StatusOr<FileDescriptor> OpenInputFile(const std::string& local, const std::string& id, const std::string& file) {
  return OpenOfInput(local, id, file, file.empty() ? absl::StrCat(id, kListSuffix) : absl::StrCat(id, "/", file));
}

absl::StatusOr<FileDescriptor> OpenPartOfInput(const std::string& local, const std::string& id, const std::string& file) {
  return OpenOfInput(local, id, file, absl::StrCat(id, kPartOfInputSuffix, "/", file));
}

void NoteWanted(const std::string& local, const std::vector<std::string>& ids) {
  for (const std::string& id : ids) {
    if (IsInputId(id)) (void)::utimensat(AT_FDCWD, InputListPath(local, id).c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
  }
}

int64_t BytesOfPartInput(const std::string& local, const std::string& id) { return BytesOnDisk(PartOfInput(local, id)); }

int64_t BytesOfPartInputs(const std::string& local) {
  int64_t bytes = 0;
  std::error_code error;
  for (fs::directory_iterator entry(InputsFolder(local), error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() == kPartOfInputSuffix) bytes += BytesOnDisk(entry->path().string());
  }
  return bytes;
}

absl::Status MakeRoomForInput(const std::string& local, int64_t bytes, const std::set<std::string>& kept) {
  return MakeRoomForInput(local, FreeBytes(local), bytes, kept);
}

absl::Status MakeRoomForInput(const std::string& local, int64_t free, int64_t bytes, const std::set<std::string>& kept) {
  if (free >= bytes) return absl::OkStatus();
  int64_t freed = 0;
  std::vector<std::string> go;
  for (const std::string& id : InputsByAge(local)) {
    if (kept.contains(id) || IsWanted(local, id)) continue;
    go.push_back(id);
    freed += BytesOnDisk(absl::StrCat(InputsFolder(local), "/", id)) + BytesOnDisk(PartOfInput(local, id));
    if (free + freed < bytes) continue;
    for (const std::string& each : go) MOTLEY_RETURN_IF_ERROR(RemoveInput(local, each));
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat("there is no room for it here: ", Count(bytes, "byte"), " are to come, and ",
                                                   Count(std::max<int64_t>(free, 0), "byte"),
                                                   " are free beside the tenth of the disk that stays free"));
}

}  // namespace motley::worker
