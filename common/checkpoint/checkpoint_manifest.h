// manifest.json: the text of a CheckpointManifest and back. docs/use/checkpoints.md shows one.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/base/files.h"
#include "common/checkpoint/checkpoint.h"

namespace motley {

inline constexpr char kManifestName[] = "manifest.json";

// With a digest of itself, so that an altered manifest is noticed as an altered array is.
std::string ManifestToJson(const CheckpointManifest& manifest);
// DATA_LOSS says what is wrong; `path` names the text.
absl::StatusOr<CheckpointManifest> ManifestFromJson(const std::string& json, const std::string& path);
// That digest (SHA-256, hex), of a text that ManifestToJson gave or ManifestFromJson took. Empty: another text.
std::string ManifestDigest(const std::string& json);

// The text of which ReadManifest makes the manifest of an open folder, with its errors of reading.
absl::StatusOr<std::string> ReadManifestText(const FileDescriptor& at, const std::string& folder);

}  // namespace motley
