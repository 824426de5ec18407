// A checkpoint of a job that keeps them on its nodes' disks, as one of its nodes writes it. Each rank has written its file into
// the temporary folder on its own node (WriteCheckpointFile); the first rank of every node then does what is here, beneath its
// own root, with one and the same manifest. docs/inside/local-storage.md
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/checkpoint_fence.h"

namespace motley {

// Writes manifest (`text`, as ManifestToJson gave it) and mark into the temporary folder of the manifest's step and generation
// under `root`, which is made where this node's ranks own nothing, syncs, and gives the folder its published name: returns that
// path. Asks nobody: who has the mark was allowed to. FAILED_PRECONDITION: a newer generation of the job has published here.
// Where an earlier try of the same save has the name, it is replaced. Errors as PublishCheckpoint's.
absl::StatusOr<std::string> PublishLocalCheckpoint(const std::string& root, const CheckpointManifest& manifest,
                                                   const std::string& text, const std::string& mark,
                                                   const CheckpointFence& fence);

// After a save, of this node's folder: deletes the job's own published ones beyond the newest `keep_latest` (0: none goes) up to
// `newest_step`, and what older generations left unpublished. Those count that have a manifest of the job's uid that reads, and a
// mark; what else is there stays. Asks before each deletion and deletes only what a generation up to the fence's wrote, as
// PruneCheckpoints does. FAILED_PRECONDITION: a newer generation exists.
absl::Status PruneLocalCheckpoints(const std::string& root, int64_t keep_latest, int64_t newest_step,
                                   const CheckpointFence& fence);

}  // namespace motley
