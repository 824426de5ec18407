// A model's folder as HuggingFace's libraries write it: config.json beside model.safetensors, or beside shards and their index.
// The folder of a download of the hub (models--OWNER--NAME, with blobs, refs and snapshots) stands for its one snapshot.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/files.h"
#include "common/weights/safetensors.h"

namespace motley {

inline constexpr char kModelConfigName[] = "config.json", kWeightsName[] = "model.safetensors",
                      kWeightsIndexName[] = "model.safetensors.index.json", kTokenizerName[] = "tokenizer.json";

// Opens a regular file or a folder for reading, by its whole path. A node's opens beneath its roots, not beneath the model's
// folder: a snapshot's files are links to ../../blobs.
using OpenPath = std::function<absl::StatusOr<FileDescriptor>(const std::string& path)>;
// Wherever the path leads.
absl::StatusOr<FileDescriptor> OpenAnywhere(const std::string& path);

// Names of the folder's entries but "." and "..", sorted.
absl::StatusOr<std::vector<std::string>> NamesInFolder(const std::string& path, const OpenPath& open);

// The folder in which the model's files are: `path`, or the snapshot of a download. Empty: there are no such weights, but
// checkpoints or something else. INVALID_ARGUMENT: a download of several revisions. Errors of opening.
absl::StatusOr<std::string> FindWeightsFolder(const std::string& path, const OpenPath& open);

// The text of its config.json. INVALID_ARGUMENT names the folder: no JSON object; of quantised weights; of a model of several
// parts.
absl::StatusOr<std::string> ReadModelConfig(const std::string& folder, const OpenPath& open);

struct WeightsFolder {
  std::string path;
  std::string config;  // the text of config.json
  std::string index;   // of the index; empty: there is one file
  std::vector<SafetensorsFile> files;
};
// `folder`: what FindWeightsFolder gave. Reads headers alone. Errors name the file: those of ReadModelConfig and of the headers;
// NOT_FOUND: a shard is missing; INVALID_ARGUMENT: no safetensors file, or an index that is wrong.
absl::StatusOr<WeightsFolder> OpenWeightsFolder(const std::string& folder, const OpenPath& open);

}  // namespace motley
