#include "common/weights/weights_folder.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "common/base/parse_json.h"
#include "common/base/some_names.h"
#include "common/base/status_macros.h"
#include "common/data/data_files.h"

namespace motley {
namespace {

using Json = nlohmann::json;

constexpr char kSnapshotsName[] = "snapshots", kBlobsName[] = "blobs", kRefsName[] = "refs";
constexpr int64_t kMostConfigBytes = 1 << 20, kMostIndexBytes = 16 << 20;

bool HoldsName(const std::vector<std::string>& names, std::string_view name) {
  return std::binary_search(names.begin(), names.end(), name);
}

bool IsTorchFile(std::string_view name) {
  return name.starts_with("pytorch_model") && (name.ends_with(".bin") || name.ends_with(".bin.index.json"));
}

// "step-00000040-gen-3", or what lies in one: an export into a job's folder is not what is meant by that folder.
bool IsOfCheckpoints(std::string_view name) {
  constexpr std::string_view kStep = "step-";
  constexpr size_t kLeastDigits = 8;
  if (name == "manifest.json") return true;
  if (!name.starts_with(kStep) || name.size() < kStep.size() + kLeastDigits) return false;
  const std::string_view digits = name.substr(kStep.size(), kLeastDigits);
  return std::all_of(digits.begin(), digits.end(), [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); });
}

bool HoldsWeights(const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(), [](std::string_view name) {
    return name == kModelConfigName || name.ends_with(".safetensors") || name == kWeightsIndexName || IsTorchFile(name);
  });
}

absl::StatusOr<std::string> SnapshotOf(const std::string& path, const OpenPath& open) {
  const std::string snapshots = absl::StrCat(path, "/", kSnapshotsName);
  MOTLEY_ASSIGN_OR_RETURN(std::vector<std::string> revisions, NamesInFolder(snapshots, open));
  std::erase_if(revisions, [](const std::string& name) { return name.starts_with('.'); });
  if (revisions.size() == 1) return absl::StrCat(snapshots, "/", revisions[0]);
  if (revisions.empty()) return absl::InvalidArgumentError(absl::StrCat(snapshots, " is empty; download the model again"));
  std::vector<std::string> paths;
  for (const std::string& revision : revisions) paths.push_back(absl::StrCat(snapshots, "/", revision));
  return absl::InvalidArgumentError(
      absl::StrCat(path, " holds ", revisions.size(), " revisions of one model; give one of them: ", SomeNames(paths)));
}

absl::Status CheckWhole(const Json& config, const std::string& path) {
  const auto has = [&](const char* key) { return config.contains(key) && !config.at(key).is_null(); };
  if (has("quantization_config")) {
    return absl::InvalidArgumentError(absl::StrCat(
        path,
        " has a quantization_config: the folder holds quantised weights; give the model as it was before it was quantised"));
  }
  for (const char* key : {"text_config", "llm_config", "language_config", "thinker_config"}) {
    if (!has(key)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(path, " has a ", key,
                     ": the model has several parts, such as for text and images, and none is taken out of it; give a model "
                     "of text alone"));
  }
  return absl::OkStatus();
}

// By file the tensors that the index has there.
absl::StatusOr<std::map<std::string, std::vector<std::string>>> ReadIndex(const std::string& text, const std::string& path) {
  MOTLEY_ASSIGN_OR_RETURN(const Json json, ParseJson(text, path));
  if (!json.is_object() || !json.contains("weight_map") || !json.at("weight_map").is_object() || json.at("weight_map").empty()) {
    return absl::InvalidArgumentError(absl::StrCat(path, " has no weight_map; download it again"));
  }
  std::map<std::string, std::vector<std::string>> tensors;
  for (const auto& [tensor, file] : json.at("weight_map").items()) {
    const std::string name = file.is_string() ? file.get<std::string>() : "";
    if (name.find('/') != std::string::npos || name.find('\0') != std::string::npos || !name.ends_with(".safetensors")) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": ", Quoted(tensor), " must be in a .safetensors file of the same folder, got ", EchoJson(file)));
    }
    tensors[name].push_back(tensor);
  }
  return tensors;
}

// A broken-off download lacks some of them.
absl::StatusOr<std::vector<SafetensorsFile>> OpenShards(const WeightsFolder& folder, const std::vector<std::string>& names,
                                                        const OpenPath& open) {
  const std::string index_path = absl::StrCat(folder.path, "/", kWeightsIndexName);
  MOTLEY_ASSIGN_OR_RETURN(const auto tensors_of, ReadIndex(folder.index, index_path));
  std::vector<std::string> missing;
  for (const auto& [name, tensors] : tensors_of) {
    if (!HoldsName(names, name)) missing.push_back(name);
  }
  if (!missing.empty()) {
    return absl::NotFoundError(absl::StrCat(folder.path, " lacks ", SomeNames(missing), " of the ", tensors_of.size(),
                                            " files that ", kWeightsIndexName, " names; download the model again"));
  }
  std::vector<SafetensorsFile> files;
  for (const auto& [name, tensors] : tensors_of) {
    const std::string path = absl::StrCat(folder.path, "/", name);
    MOTLEY_ASSIGN_OR_RETURN(FileDescriptor file, open(path));
    MOTLEY_ASSIGN_OR_RETURN(SafetensorsFile opened, OpenSafetensors(std::move(file), path));
    std::set<std::string_view> held;
    for (const StoredTensor& tensor : opened.tensors) held.insert(tensor.name);
    for (const std::string& tensor : tensors) {
      if (held.contains(tensor)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(path, " lacks tensor ", Quoted(tensor), ", which ", kWeightsIndexName, " has there; download both again"));
    }
    files.push_back(std::move(opened));
  }
  return files;
}

absl::Status NoSafetensors(const std::string& folder, const std::vector<std::string>& names) {
  const auto torch = std::find_if(names.begin(), names.end(), IsTorchFile);
  if (torch != names.end()) {
    return absl::InvalidArgumentError(absl::StrCat(folder, " holds ", *torch, " and no ", kWeightsName,
                                                   ": only safetensors are read, which hold no code; download those, or "
                                                   "load the model in transformers and save_pretrained() it"));
  }
  if (HoldsName(names, "adapter_model.safetensors")) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder, " holds an adapter (adapter_model.safetensors) and no model; merge it into its base model first"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(folder, " holds neither ", kWeightsName, " nor ", kWeightsIndexName, "; download the model's safetensors"));
}

}  // namespace

absl::StatusOr<FileDescriptor> OpenAnywhere(const std::string& path) { return OpenData(path); }

absl::StatusOr<std::vector<std::string>> NamesInFolder(const std::string& path, const OpenPath& open) {
  MOTLEY_ASSIGN_OR_RETURN(FileDescriptor folder, open(path));
  return NamesIn(std::move(folder), path);
}

absl::StatusOr<std::string> FindWeightsFolder(const std::string& path, const OpenPath& open) {
  MOTLEY_ASSIGN_OR_RETURN(FileDescriptor opened, open(path));
  struct stat found;
  if (::fstat(opened.get(), &found) != 0) return FileError(errno, "look at", path);
  if (!S_ISDIR(found.st_mode)) return std::string();
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(std::move(opened), path));
  if (std::any_of(names.begin(), names.end(), IsOfCheckpoints)) return std::string();
  const bool download = HoldsName(names, kSnapshotsName) && (HoldsName(names, kBlobsName) || HoldsName(names, kRefsName));
  if (download) return SnapshotOf(path, open);
  return HoldsWeights(names) ? path : std::string();
}

absl::StatusOr<std::string> ReadModelConfig(const std::string& folder, const OpenPath& open) {
  const std::string path = absl::StrCat(folder, "/", kModelConfigName);
  const absl::StatusOr<FileDescriptor> file = open(path);
  if (absl::IsNotFound(file.status())) {
    return absl::NotFoundError(absl::StrCat(folder, " holds no ", kModelConfigName, "; download it beside the weights"));
  }
  MOTLEY_RETURN_IF_ERROR(file.status());
  MOTLEY_ASSIGN_OR_RETURN(std::string text, ReadSmallFile(*file, path, kMostConfigBytes));
  MOTLEY_ASSIGN_OR_RETURN(const Json json, ParseJson(text, path));
  if (!json.is_object()) return absl::InvalidArgumentError(absl::StrCat(path, " must be a JSON object"));
  MOTLEY_RETURN_IF_ERROR(CheckWhole(json, path));
  return text;
}

absl::StatusOr<WeightsFolder> OpenWeightsFolder(const std::string& folder, const OpenPath& open) {
  WeightsFolder opened;
  opened.path = folder;
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesInFolder(folder, open));
  MOTLEY_ASSIGN_OR_RETURN(opened.config, ReadModelConfig(folder, open));
  // As transformers has it, one file wins over shards beside it.
  if (HoldsName(names, kWeightsName)) {
    const std::string path = absl::StrCat(folder, "/", kWeightsName);
    MOTLEY_ASSIGN_OR_RETURN(FileDescriptor file, open(path));
    MOTLEY_ASSIGN_OR_RETURN(SafetensorsFile one, OpenSafetensors(std::move(file), path));
    opened.files.push_back(std::move(one));
    return opened;
  }
  if (!HoldsName(names, kWeightsIndexName)) return NoSafetensors(folder, names);
  const std::string index_path = absl::StrCat(folder, "/", kWeightsIndexName);
  MOTLEY_ASSIGN_OR_RETURN(const FileDescriptor index, open(index_path));
  MOTLEY_ASSIGN_OR_RETURN(opened.index, ReadSmallFile(index, index_path, kMostIndexBytes));
  MOTLEY_ASSIGN_OR_RETURN(opened.files, OpenShards(opened, names, open));
  return opened;
}

}  // namespace motley
