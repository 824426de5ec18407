// Copies of other nodes' files on this node's disk, so that a disk may be lost. docs/inside/local-storage.md
#pragma once

#include "absl/status/status.h"
#include "common/session/files.h"
#include "worker/files/bring.h"

namespace motley::worker {

// Brings the command's files whole, as far as they are not here, beside this node's own of that checkpoint; without a folder of
// its published name makes one first, with manifest and mark: what the node's ranks wrote and did not publish is in it then. Each
// is given its name when it is all here and verified; what came of one that was called off, or failed, is kept for the next try.
// Errors as CheckpointBringer's. INVALID_ARGUMENT: of the command.
absl::Status KeepCopies(const CopyCommand& command, const Bringing& bringing);
// Deletes what the command names of the job.
absl::Status DropCheckpoints(const DropCommand& command, const std::string& local);

}  // namespace motley::worker
