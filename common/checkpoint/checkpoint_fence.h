// How a writer of checkpoints changes the folder that it shares with newer epochs. A rank may be stopped for any time between
// any two of its operations, and the job may go on, or end, without it. So nothing is trusted that was seen before: a folder
// is moved aside in one operation, the manifest that was moved is looked at, and what turns out to be newer gets its name back.
// Invariant: a checkpoint of an epoch newer than the fence's keeps its name, or has it again when the call returns; killed
// in between it stays whole beside it, where FindNewestCheckpoint finds it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace motley {

struct CheckpointFence {
  int64_t epoch = 0;  // the writer's
  // Whether the epoch still is the newest: asked right before what outlives the writer; `purpose` is for people.
  // FAILED_PRECONDITION: it is not.
  std::function<absl::Status(const std::string& purpose)> confirm;
  // Called before each operation on the shared folder; an error stands for the operation's. For tests, which stop or break
  // the writer there; may be empty.
  std::function<absl::Status(const std::string& operation)> before = {};
  bool can_exchange = true;  // false: as on a file system that cannot exchange two names (NFS)
};

// The epoch in the folder's manifest. 0: none can be read there, now or later (no manifest, or a damaged one). Other errors
// (no right, input or output, a newer format) say nothing about what is there.
absl::StatusOr<int64_t> EpochThatWrote(const std::string& folder);

// Gives the folder `from` the name `to` and returns where the folder is that had the name: "" = none had it. Where two names
// cannot be exchanged the name is missing for an instant; the folder that had it is beside it. FAILED_PRECONDITION:
// another writer took the name meanwhile.
absl::StatusOr<std::string> PlaceCheckpoint(const std::string& from, const std::string& to, const CheckpointFence& fence);

// The name `to` gets whichever of the two folders is of the newer epoch; the other is left at `aside` or beside it.
absl::Status PutBackCheckpoint(const std::string& aside, const std::string& to, const CheckpointFence& fence);

// Deletes a folder: moved aside under `suffix`, looked at, its manifest first. Gone already is fine. FAILED_PRECONDITION: it
// is of a newer epoch, and has its name again. Does not ask.
absl::Status DiscardCheckpoint(const std::string& folder, int64_t step, const char* suffix, const CheckpointFence& fence);

// For each operation on the shared folder: what fence.before says.
absl::Status BeforeOperation(const CheckpointFence& fence, const std::string& operation);
absl::Status NewerEpochWrote(const std::string& folder, int64_t epoch);  // FAILED_PRECONDITION with a sentence

}  // namespace motley
