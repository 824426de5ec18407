#include "common/weights/base_model.h"

#include <stdio.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "common/base/fault.h"
#include "common/base/parse_json.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/weights/stored_type.h"

namespace motley {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kBasePrefix = "base-";
constexpr size_t kBaseDigits = 16;
constexpr char kBaseDocument[] = "base.json", kBaseFormat[] = "motley-base", kFilesFolder[] = "files";
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

absl::Status WriteBase(const BaseModel& base, const std::string& document, const std::string& folder) {
  MOTLEY_RETURN_IF_ERROR(RemoveTree(folder));
  MOTLEY_RETURN_IF_ERROR(MakeOwnFolder(folder));
  const std::string files = absl::StrCat(folder, "/", kFilesFolder);
  MOTLEY_RETURN_IF_ERROR(MakeOwnFolder(files));
  for (const SmallFile& file : base.files) {
    const std::string path = absl::StrCat(files, "/", file.name);
    const std::string parent = std::filesystem::path(path).parent_path().string();
    if (parent != files) MOTLEY_RETURN_IF_ERROR(MakeOwnFolder(parent));
    MOTLEY_RETURN_IF_ERROR(WriteFileDurably(path, file.text));
    if (parent != files) MOTLEY_RETURN_IF_ERROR(SyncFolder(parent));
  }
  MOTLEY_RETURN_IF_ERROR(SyncFolder(files));
  MOTLEY_RETURN_IF_ERROR(WriteFileDurably(absl::StrCat(folder, "/", kBaseDocument), document));
  return SyncFolder(folder);
}

// Names come from a file and become paths.
bool IsSafeName(const std::string& name) {
  const std::filesystem::path path(name);
  return !name.empty() && path.is_relative() &&
         std::none_of(path.begin(), path.end(), [](const auto& part) { return part == ".." || part == "." || part.empty(); });
}

// Throws Json::exception on a missing key or a wrong type.
absl::StatusOr<BaseModel> BaseFromJson(const Json& json, const std::string& folder) {
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
    MOTLEY_ASSIGN_OR_RETURN(std::string text, ReadSmallFile(file, kMostBaseBytes));
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

absl::StatusOr<std::string> KeepBase(const BaseModel& base, const std::string& root, int64_t epoch) {
  const std::string document = DocumentOf(base), name = NameOfBase(document);
  const std::string folder = absl::StrCat(root, "/", name);
  if (FileExists(folder)) return name;
  const std::string unfinished = absl::StrCat(root, "/.tmp-", name, "-gen-", epoch);
  const absl::Status written = WriteBase(base, document, unfinished);
  if (written.ok() && ::rename(unfinished.c_str(), folder.c_str()) == 0) {
    MOTLEY_RETURN_IF_ERROR(SyncFolder(root));
    return name;
  }
  const int error = errno;
  (void)RemoveTree(unfinished);
  MOTLEY_RETURN_IF_ERROR(written);
  if (FileExists(folder)) return name;  // another job's rank wrote the same meanwhile
  return FileError(error, "name", folder);
}

absl::StatusOr<BaseModel> ReadBase(const std::string& root, const std::string& name) {
  const std::string folder = absl::StrCat(root, "/", name), path = absl::StrCat(folder, "/", kBaseDocument);
  if (!IsBaseName(name)) return absl::DataLossError(absl::StrCat(Quoted(name), " names no base of a model"));
  MOTLEY_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path, kMostBaseBytes));
  if (NameOfBase(text) != name) return absl::DataLossError(absl::StrCat(path, " was altered: its digest does not match"));
  MOTLEY_ASSIGN_OR_RETURN(const Json json, ParseJson(text, path));
  try {
    return BaseFromJson(json, folder);
  } catch (const Json::exception& error) {
    return absl::DataLossError(absl::StrCat(path, " is wrong: ", Echo(error.what())));
  }
}

}  // namespace motley
