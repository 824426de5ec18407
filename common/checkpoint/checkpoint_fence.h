// How a writer of checkpoints changes the folder that it shares with newer epochs. A rank may be stopped for any time between
// any two of its operations, and the job may go on, or end, without it. That does no harm: a published folder's name holds the
// epoch that wrote it, so that what has the name never changes, and an epoch writes and deletes only under names up to its own.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "common/checkpoint/checkpoint_owner.h"

namespace motley {

struct CheckpointFence {
  CheckpointOwner owner = {};  // the writer's job: it deletes nobody else's
  int64_t epoch = 0;           // the writer's
  // Whether the epoch still is the newest: asked right before what outlives the writer; `purpose` is for people.
  // FAILED_PRECONDITION: it is not.
  std::function<absl::Status(const std::string& purpose)> confirm;
  // Called before each operation on the shared folder; an error stands for the operation's. For tests, which stop or break
  // the writer there; may be empty.
  std::function<absl::Status(const std::string& operation)> before = {};
};

// For each operation on the shared folder: what fence.before says.
absl::Status BeforeOperation(const CheckpointFence& fence, const std::string& operation);

// FAILED_PRECONDITION names a checkpoint of the writer's own job and of a newer epoch than its own: another coordinator gave that
// one. A name alone proves nothing.
absl::Status CheckIsNewest(const std::string& root, const CheckpointFence& fence);
// Whether a manifest of the own job says that a newer epoch than the writer's has written.
bool IsOfNewerEpoch(const CheckpointManifest& manifest, const CheckpointFence& fence);
absl::Status NewerEpochError(const std::string& folder, const CheckpointManifest& manifest, const CheckpointFence& fence);

// Renames a folder. ALREADY_EXISTS when `to` is there and not empty.
absl::Status MoveCheckpoint(const std::string& from, const std::string& to, const CheckpointFence& fence);

// Deletes a folder, whatever is in it: moved to a name of the own epoch first, in one operation, so that nobody finds half of
// it, and no other writer publishes half of it. Gone already is fine. Does not ask.
absl::Status DiscardCheckpoint(const std::string& folder, int64_t step, const CheckpointFence& fence);

}  // namespace motley
