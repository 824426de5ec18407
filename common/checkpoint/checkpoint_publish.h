// The last steps of a save, which checkpoints of one folder and those of the nodes' own disks share: PublishCheckpoint,
// PublishLocalCheckpoint.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/checkpoint_fence.h"

namespace motley {

// The same error with what the reader needs: folder, bytes wanted, bytes free. What was there a moment ago and is not now is a
// file system that went, not a wrong path.
absl::Status ExplainSave(const absl::Status& status, const std::string& folder, int64_t bytes);

enum class SecondName { kOfTheUid, kNone };  // where another job's checkpoint has the name
// Syncs the temporary folder, in which all is written, and gives it its published name under `root`: returns that path. An
// earlier try of the same save is replaced.
absl::StatusOr<std::string> NameCheckpoint(const std::string& root, const CheckpointManifest& manifest,
                                           const std::string& temporary, SecondName second, const CheckpointFence& fence);

}  // namespace motley
