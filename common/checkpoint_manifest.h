// manifest.json: the text of a CheckpointManifest and back. docs/checkpoints.md shows one.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/checkpoint.h"

namespace motley {

inline constexpr char kManifestName[] = "manifest.json";

// With a digest of itself, so that an altered manifest is noticed as an altered array is.
std::string ManifestToJson(const CheckpointManifest& manifest);
// DATA_LOSS says what is wrong; `path` names the text.
absl::StatusOr<CheckpointManifest> ManifestFromJson(const std::string& json, const std::string& path);

// "step-00000040" -> 40; -1 for other names.
int64_t StepOfFolder(const std::string& name);
// ".tmp-step-00000040-epoch-3", whatever follows the number -> 3; -1 for other names.
int64_t EpochOfTemporaryFolder(const std::string& name);

}  // namespace motley
