#include "common/inputs/input_list.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "common/base/count.h"
#include "common/base/files.h"
#include "common/base/parse_json.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"
#include "common/checkpoint/checkpoint_blocks.h"
#include "common/weights/small_files.h"
#include "common/weights/weights_folder.h"

namespace motley {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr char kInputFormat[] = "motley-input";
constexpr int kInputVersion = 1;

int64_t BlocksOf(int64_t bytes) { return (bytes + kCheckpointBlockBytes - 1) / kCheckpointBlockBytes; }

// The first part is the input's name, and each part one that a folder may have.
bool IsFileOf(const std::string& name, const std::string& file) {
  const fs::path path(file);
  if (path.empty() || path.is_absolute() || *path.begin() != name || path.lexically_normal().string() != file) return false;
  return std::all_of(path.begin(), path.end(), [](const fs::path& part) { return IsInputName(part.string()); });
}

absl::Status CheckFiles(const InputList& list) {
  std::set<std::string> names;
  for (const CheckpointFile& file : list.files) {
    const auto is_digest = [](const std::string& digest) { return IsInputId(digest); };
    const bool good = IsFileOf(list.name, file.name) && file.bytes >= 0 && names.insert(file.name).second &&
                      static_cast<int64_t>(file.blocks.size()) == BlocksOf(file.bytes) &&
                      std::all_of(file.blocks.begin(), file.blocks.end(), is_digest);
    if (!good) return absl::DataLossError(absl::StrCat("the list of an input has a wrong file ", Quoted(file.name)));
  }
  // A file that is the folder of another one.
  for (const std::string& name : names) {
    for (fs::path above = fs::path(name).parent_path(); !above.empty(); above = above.parent_path()) {
      if (names.contains(above.string()))
        return absl::DataLossError(
            absl::StrCat("the list of an input has ", Quoted(above.string()), " as a file and as a folder"));
    }
  }
  return absl::OkStatus();
}

// Throws Json::exception on a missing key or a wrong type.
absl::StatusOr<InputList> ListFromJson(const Json& json) {
  if (json.at("format").get<std::string>() != kInputFormat || json.at("version").get<int>() != kInputVersion) {
    return absl::DataLossError("the list of an input is of another version; use one version of Motley everywhere");
  }
  InputList list;
  list.name = json.at("name").get<std::string>();
  for (const Json& entry : json.at("files")) {
    CheckpointFile& file = list.files.emplace_back();
    file.name = entry.at("name").get<std::string>();
    file.bytes = entry.at("bytes").get<int64_t>();
    file.blocks = entry.at("blocks_sha256").get<std::vector<std::string>>();
  }
  if (!IsInputName(list.name) || list.files.empty() || list.files.size() > kMostInputFiles) {
    return absl::DataLossError(absl::StrCat("the list of an input has ", list.files.size(), " files of ", Quoted(list.name)));
  }
  MOTLEY_RETURN_IF_ERROR(CheckFiles(list));
  return list;
}

absl::Status CheckKind(const struct stat& found, const std::string& path) {
  const char* const what = S_ISLNK(found.st_mode)    ? "a symbolic link"
                           : S_ISFIFO(found.st_mode) ? "a pipe"
                           : S_ISSOCK(found.st_mode) ? "a socket"
                                                     : "a device";
  if (S_ISREG(found.st_mode) || S_ISDIR(found.st_mode)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(path, " is ", what, ", which is not sent; put a file there"));
}

struct Found {
  std::string name, path;
  struct stat stat;
};

// What lies at and beneath the path, in the order of names. `beneath`: where in the folder this is.
absl::Status Collect(const std::string& name, const std::string& path, const std::string& beneath, const InputChoice& choice,
                     std::vector<Found>& files) {
  struct stat found {};
  if ((choice.follow_links ? ::stat : ::lstat)(path.c_str(), &found) != 0) return FileError(errno, "read", path);
  Utf8Checker utf8;
  if (utf8.Feed(name) || utf8.End())
    return absl::InvalidArgumentError(absl::StrCat(Quoted(path), " has a name that is no UTF-8; rename it"));
  MOTLEY_RETURN_IF_ERROR(CheckKind(found, path));
  if (S_ISREG(found.st_mode)) {
    files.push_back({name, path, found});
    if (files.size() <= kMostInputFiles) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("more than ", kMostInputFiles, " files lie in it; put them into fewer"));
  }
  std::vector<std::string> entries;
  std::error_code error;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    entries.push_back(entry->path().filename().string());
  }
  if (error) return FileError(error.value(), "list", path);
  std::sort(entries.begin(), entries.end());
  for (const std::string& entry : entries) {
    if (!IsInputName(entry))
      return absl::InvalidArgumentError(absl::StrCat(Quoted(path + "/" + entry), " has a name that is not sent; rename it"));
    const std::string place = beneath.empty() ? entry : absl::StrCat(beneath, "/", entry);
    if (choice.wanted && !choice.wanted(place)) continue;
    MOTLEY_RETURN_IF_ERROR(Collect(absl::StrCat(name, "/", entry), absl::StrCat(path, "/", entry), place, choice, files));
  }
  return absl::OkStatus();
}

bool IsSame(const struct stat& a, const struct stat& b) {
  return a.st_ino == b.st_ino && a.st_size == b.st_size && a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
         a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

absl::StatusOr<CheckpointFile> DigestFile(const Found& found, const InputChoice& choice,
                                          const std::function<bool(int64_t bytes)>& read) {
  CheckpointFile file;
  file.name = found.name;
  file.bytes = found.stat.st_size;
  MOTLEY_ASSIGN_OR_RETURN(const FileDescriptor opened,
                          OpenForRead(found.path, choice.follow_links ? SymbolicLinks::kFollow : SymbolicLinks::kRefuse));
  const absl::Status changed =
      absl::AbortedError(absl::StrCat(found.path, " changed while it was read; submit when nobody writes there"));
  BlockDigests digests;
  int64_t bytes = 0;
  MOTLEY_RETURN_IF_ERROR(ForEachBlock(opened, found.path, [&](std::string_view block) {
    // One that somebody writes as fast as it is read has no end.
    if ((bytes += static_cast<int64_t>(block.size())) > file.bytes) return changed;
    digests.Update(block.data(), static_cast<int64_t>(block.size()));
    return read(static_cast<int64_t>(block.size())) ? absl::OkStatus() : absl::CancelledError("stopped");
  }));
  file.blocks = digests.Finish();
  struct stat now {};
  if (::fstat(opened.get(), &now) != 0 || !IsSame(found.stat, now)) return changed;
  return file;
}

}  // namespace

int64_t InputList::bytes() const {
  int64_t sum = 0;
  for (const CheckpointFile& file : files) sum += file.bytes;
  return sum;
}

std::string InputListToJson(const InputList& list) {
  Json files = Json::array();
  for (const CheckpointFile& file : list.files) {
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"blocks_sha256", file.blocks}});
  }
  return Json{{"format", kInputFormat}, {"version", kInputVersion}, {"name", list.name}, {"files", files}}.dump();
}

JobInput InputOf(const InputList& list) { return {Sha256Hex(InputListToJson(list)), list.name}; }

absl::StatusOr<InputList> InputListFromJson(const std::string& text, const std::string& id) {
  if (Sha256Hex(text) != id) return absl::DataLossError("the list of an input came altered: its digest does not match");
  MOTLEY_ASSIGN_OR_RETURN(const Json json, ParseJson(text, "the list of an input"));
  try {
    return ListFromJson(json);
  } catch (const Json::exception& error) {
    return absl::DataLossError(absl::StrCat("the list of an input is wrong: ", Echo(error.what())));
  }
}

InputChoice ChoiceOfWeights() {
  return {.follow_links = true, .wanted = [](const std::string& beneath) {
            const std::string_view folder = std::string_view(beneath).substr(0, beneath.find('/'));
            return IsSmallFile(beneath) || folder == kTemplatesFolder || beneath == kWeightsIndexName ||
                   (beneath.ends_with(".safetensors") && folder == beneath);
          }};
}

absl::StatusOr<InputList> ListInput(const std::string& path, const std::function<bool(int64_t read, int64_t all)>& progress,
                                    const InputChoice& choice) {
  InputList list;
  fs::path named = fs::path(path).lexically_normal();
  if (!named.has_filename()) named = named.parent_path();
  list.name = named.filename().string();
  if (!IsInputName(list.name))
    return absl::InvalidArgumentError(absl::StrCat(Quoted(path), " names no file or folder that can be sent"));
  std::error_code error;
  const fs::path real = fs::canonical(named, error);  // what people name may be a link; what lies beneath may not
  if (error) return FileError(error.value(), "read", path);
  std::vector<Found> files;
  MOTLEY_RETURN_IF_ERROR(Collect(list.name, real.string(), "", choice, files));
  if (files.empty()) return absl::InvalidArgumentError(absl::StrCat(path, " holds no file"));
  int64_t all = 0, done = 0;
  for (const Found& found : files) all += found.stat.st_size;
  for (const Found& found : files) {
    MOTLEY_ASSIGN_OR_RETURN(CheckpointFile file,
                            DigestFile(found, choice, [&](int64_t bytes) { return progress(done += bytes, all); }));
    list.files.push_back(std::move(file));
  }
  return list;
}

}  // namespace motley
