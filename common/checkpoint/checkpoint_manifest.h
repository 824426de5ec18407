// manifest.json: the text of a CheckpointManifest and back. docs/use/checkpoints.md shows one.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint.h"

namespace motley {

inline constexpr char kManifestName[] = "manifest.json";

// With a digest of itself, so that an altered manifest is noticed as an altered array is.
std::string ManifestToJson(const CheckpointManifest& manifest);
// DATA_LOSS says what is wrong; `path` names the text.
absl::StatusOr<CheckpointManifest> ManifestFromJson(const std::string& json, const std::string& path);

}  // namespace motley
