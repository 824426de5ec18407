#include "common/weights/base_model.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/clean_text.h"
#include "common/base/job_uid.h"
#include "common/base/parse_json.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/weights/stored_type.h"

namespace motley {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kBasePrefix = "base-";
constexpr size_t kBaseDigits = 16;
constexpr char kBaseFormat[] = "motley-base", kFilesFolder[] = "files", kMark[] = "job-";
constexpr int kBaseVersion = 1;
constexpr int64_t kMostBaseBytes = int64_t{64} << 20;

// Keys are sorted: the same base has the same text.
std::string DocumentOf(const BaseModel& base) {
  Json tensors = Json::array(), files = Json::object();
  for (const BaseTensor& tensor : base.tensors) {
    tensors.push_back({{"name", tensor.name}, {"tensor", tensor.tensor}, {"dtype", std::string(StoredNameOf(tensor.dtype))}});
  }
  for (const SmallFile& file : base.files) files[file.name] = Sha256Hex(file.text);
  const Json json = {{"format", kBaseFormat}, {"version", kBaseVersion}, {"tensors", tensors}, {"files", files}};
  return absl::StrCat(json.dump(1, ' ', false, Json::error_handler_t::replace), "\n");
}

std::string NameOfBase(const std::string& document) {
  return absl::StrCat(std::string(kBasePrefix), Sha256Hex(document).substr(0, kBaseDigits));
}

absl::Status WriteBase(const NamedBase& base, const JobUid& uid, const std::string& folder) {
  MOTLEY_RETURN_IF_ERROR(RemoveTree(folder));
  MOTLEY_RETURN_IF_ERROR(MakeOwnFolder(folder));
  const std::string files = absl::StrCat(folder, "/", kFilesFolder);
  MOTLEY_RETURN_IF_ERROR(MakeOwnFolder(files));
  for (const SmallFile& file : base.base.files) {
    const std::string path = absl::StrCat(files, "/", file.name);
    const std::string parent = std::filesystem::path(path).parent_path().string();
    if (parent != files) MOTLEY_RETURN_IF_ERROR(MakeOwnFolder(parent));
    MOTLEY_RETURN_IF_ERROR(WriteFileDurably(path, file.text));
    if (parent != files) MOTLEY_RETURN_IF_ERROR(SyncFolder(parent));
  }
  MOTLEY_RETURN_IF_ERROR(SyncFolder(files));
  if (!uid.empty()) MOTLEY_RETURN_IF_ERROR(WriteFileDurably(absl::StrCat(folder, "/", kMark, uid.value()), ""));
  MOTLEY_RETURN_IF_ERROR(WriteFileDurably(absl::StrCat(folder, "/", kBaseDocument), base.document));
  return SyncFolder(folder);
}

// A folder beside or in another one, which is no link. The last part of `path` is `name`.
absl::StatusOr<FileDescriptor> FolderIn(const FileDescriptor& above, const std::string& name, const std::string& path) {
  FileDescriptor folder(::openat(above.get(), name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (folder.get() >= 0) return folder;
  const int error = errno;
  struct stat found;
  const bool is_there = ::fstatat(above.get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0;
  if (!is_there || S_ISDIR(found.st_mode)) return FileError(error, "open", path);
  return absl::InvalidArgumentError(absl::StrCat(path, " is a ", S_ISLNK(found.st_mode) ? "symbolic link" : "file",
                                                 ", where a folder must be; put the folder there"));
}

absl::StatusOr<FileDescriptor> OpenBase(const std::string& root, const std::string& name) {
  const FileDescriptor above(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (above.get() < 0) return FileError(errno, "open", root);
  return FolderIn(above, name, absl::StrCat(root, "/", name));
}

// `name` as base.json has it: "config.json", "additional_chat_templates/tool.jinja". `folder` is what errors call the base.
absl::StatusOr<FileDescriptor> OpenOneOf(const FileDescriptor& base, const std::string& folder, const std::string& name) {
  std::string path = absl::StrCat(folder, "/", kFilesFolder);
  MOTLEY_ASSIGN_OR_RETURN(FileDescriptor at, FolderIn(base, kFilesFolder, path));
  const std::filesystem::path parts(name);
  for (const auto& part : parts.parent_path()) {
    absl::StrAppend(&path, "/", part.string());
    MOTLEY_ASSIGN_OR_RETURN(at, FolderIn(at, part.string(), path));
  }
  return OpenForReadIn(at, parts.filename().string(), absl::StrCat(folder, "/", kFilesFolder, "/", name));
}

// By sizes alone: bytes are compared by who reads them. Of other errors than these nothing is known.
absl::StatusOr<bool> IsWhole(const FileDescriptor& at, const NamedBase& base, const std::string& folder) {
  const auto has = [](const absl::StatusOr<FileDescriptor>& file, const std::string& text) -> absl::StatusOr<bool> {
    if (absl::IsNotFound(file.status())) return false;
    MOTLEY_RETURN_IF_ERROR(file.status());
    struct stat found;
    return ::fstat(file->get(), &found) == 0 && found.st_size == static_cast<int64_t>(text.size());
  };
  MOTLEY_ASSIGN_OR_RETURN(bool whole,
                          has(OpenForReadIn(at, kBaseDocument, absl::StrCat(folder, "/", kBaseDocument)), base.document));
  for (const SmallFile& file : base.base.files) {
    if (!whole) break;
    MOTLEY_ASSIGN_OR_RETURN(whole, has(OpenOneOf(at, folder, file.name), file.text));
  }
  return whole;
}

// Who keeps it there already says so, unless an older build did, which nobody must delete.
absl::Status AddMark(const std::string& root, const std::string& name, const JobUid& uid) {
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<JobUid> keepers, KeepersOf(root, name));
  if (uid.empty() || keepers.empty() || std::find(keepers.begin(), keepers.end(), uid) != keepers.end()) return absl::OkStatus();
  return WriteFileDurably(absl::StrCat(root, "/", name, "/", kMark, uid.value()), "");
}

// Names come from a file and become paths.
bool IsSafeName(const std::string& name) {
  const std::filesystem::path path(name);
  return !name.empty() && path.is_relative() &&
         std::none_of(path.begin(), path.end(), [](const auto& part) { return part == ".." || part == "." || part.empty(); });
}

// Throws Json::exception on a missing key or a wrong type.
absl::StatusOr<BaseModel> BaseFromJson(const Json& json, const FileDescriptor& at, const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/", kBaseDocument);
  if (json.at("format").get<std::string>() != kBaseFormat || json.at("version").get<int>() != kBaseVersion) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is of another version; export with the newest motley"));
  }
  BaseModel base;
  for (const Json& entry : json.at("tensors")) {
    const std::optional<DType> dtype = DTypeOfStored(entry.at("dtype").get<std::string>());
    if (!dtype) return absl::DataLossError(absl::StrCat(path, " names no type of weights: ", EchoJson(entry)));
    base.tensors.push_back({entry.at("name").get<std::string>(), entry.at("tensor").get<std::string>(), *dtype});
  }
  for (const auto& [name, digest] : json.at("files").items()) {
    if (!IsSafeName(name)) return absl::DataLossError(absl::StrCat(path, " has a file named ", Quoted(name)));
    const std::string file = absl::StrCat(folder, "/", kFilesFolder, "/", name);
    MOTLEY_ASSIGN_OR_RETURN(const FileDescriptor opened, OpenOneOf(at, folder, name));
    MOTLEY_ASSIGN_OR_RETURN(std::string text, ReadSmallFile(opened, file, kMostBaseBytes));
    if (Sha256Hex(text) != digest.get<std::string>()) {
      return absl::DataLossError(absl::StrCat(file, " was altered: its digest does not match"));
    }
    base.files.push_back({name, std::move(text)});
  }
  return base;
}

}  // namespace

const std::string* BaseModel::Find(std::string_view name) const {
  const auto file = std::find_if(files.begin(), files.end(), [&](const SmallFile& each) { return each.name == name; });
  return file == files.end() ? nullptr : &file->text;
}

BaseModel BaseOf(const HuggingFaceWeights& weights) {
  const WeightTable& table = weights.table();
  BaseModel base;
  for (size_t unit = 0; unit < table.layout.size(); ++unit) {
    for (size_t t = 0; t < table.layout[unit].tensors.size(); ++t) {
      const StoredAt& at = table.tensors[unit][t];
      base.tensors.push_back({at.tensor.name, table.layout[unit].tensors[t].name, at.dtype});
    }
  }
  if (table.tied_head) {
    base.tensors.push_back({table.tied_head->tensor.name, table.layout[0].tensors[0].name, table.tied_head->dtype});
  }
  return base;
}

bool IsBaseName(std::string_view name) {
  if (!name.starts_with(kBasePrefix) || name.size() != kBasePrefix.size() + kBaseDigits) return false;
  name.remove_prefix(kBasePrefix.size());
  return std::all_of(name.begin(), name.end(), [](char c) { return absl::ascii_isxdigit(static_cast<unsigned char>(c)); });
}

NamedBase::NamedBase(BaseModel model) : base(std::move(model)), document(DocumentOf(base)), name(NameOfBase(document)) {}

std::string UnfinishedBaseName(const std::string& name, int64_t epoch, const JobUid& uid) {
  return absl::StrCat(".tmp-", name, "-gen-", epoch, uid.empty() ? "" : "-job-", uid.value());
}

absl::StatusOr<std::vector<JobUid>> KeepersOf(const std::string& root, const std::string& name) {
  const std::string folder = absl::StrCat(root, "/", name);
  MOTLEY_RETURN_IF_ERROR(OpenBase(root, name).status());
  std::vector<JobUid> keepers;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string file = entry->path().filename().string();
    absl::string_view text = file;
    if (absl::ConsumePrefix(&text, kMark) && IsJobUid(std::string(text))) keepers.emplace_back(std::string(text));
  }
  if (error) return FileError(error.value(), "list", folder);
  return keepers;
}

absl::Status KeepBase(const NamedBase& base, const std::string& root, int64_t epoch, const JobUid& uid) {
  const std::string folder = absl::StrCat(root, "/", base.name);
  const absl::StatusOr<FileDescriptor> there = OpenBase(root, base.name);
  if (there.ok()) {
    MOTLEY_ASSIGN_OR_RETURN(const bool whole, IsWhole(*there, base, folder));
    if (whole) return AddMark(root, base.name, uid);
  } else if (!absl::IsNotFound(there.status())) {
    return there.status();
  }
  const std::string unfinished = absl::StrCat(root, "/", UnfinishedBaseName(base.name, epoch, uid));
  absl::Status written = WriteBase(base, uid, unfinished);
  if (written.ok() && there.ok()) written = RemoveTree(folder);  // somebody deleted some of it
  if (written.ok() && ::rename(unfinished.c_str(), folder.c_str()) == 0) return SyncFolder(root);
  const int error = errno;
  (void)RemoveTree(unfinished);
  MOTLEY_RETURN_IF_ERROR(written);
  if (OpenBase(root, base.name).ok()) return AddMark(root, base.name, uid);  // another job's rank wrote the same meanwhile
  return FileError(error, "name", folder);
}

absl::StatusOr<std::map<std::string, std::string>> FilesOfBase(const std::string& document, const std::string& name) {
  const std::string path = absl::StrCat(name, "/", kBaseDocument);
  if (NameOfBase(document) != name) return absl::DataLossError(absl::StrCat(path, " was altered: its digest does not match"));
  MOTLEY_ASSIGN_OR_RETURN(const Json json, ParseJson(document, path));
  std::map<std::string, std::string> files;
  try {
    for (const auto& [file, digest] : json.at("files").items()) {
      if (!IsSafeName(file)) return absl::DataLossError(absl::StrCat(path, " has a file named ", Quoted(file)));
      files[absl::StrCat(name, "/", kFilesFolder, "/", file)] = digest.get<std::string>();
    }
  } catch (const Json::exception& error) {
    return absl::DataLossError(absl::StrCat(path, " is wrong: ", Echo(error.what())));
  }
  return files;
}

absl::StatusOr<BaseModel> ReadBase(const std::string& root, const std::string& name) {
  const std::string folder = absl::StrCat(root, "/", name), path = absl::StrCat(folder, "/", kBaseDocument);
  if (!IsBaseName(name)) return absl::DataLossError(absl::StrCat(Quoted(name), " names no base of a model"));
  MOTLEY_ASSIGN_OR_RETURN(const FileDescriptor at, OpenBase(root, name));
  MOTLEY_ASSIGN_OR_RETURN(const FileDescriptor document, OpenForReadIn(at, kBaseDocument, path));
  MOTLEY_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(document, path, kMostBaseBytes));
  if (NameOfBase(text) != name) return absl::DataLossError(absl::StrCat(path, " was altered: its digest does not match"));
  MOTLEY_ASSIGN_OR_RETURN(const Json json, ParseJson(text, path));
  try {
    return BaseFromJson(json, at, folder);
  } catch (const Json::exception& error) {
    return absl::DataLossError(absl::StrCat(path, " is wrong: ", Echo(error.what())));
  }
}

}  // namespace motley
