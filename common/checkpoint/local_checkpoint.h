// A checkpoint of a job that keeps them on its nodes' disks, as one of its nodes writes it. Each rank has written its file into
// the temporary folder on its own node (WriteCheckpointFile); the first rank of every node then does what is here, beneath its
// own root, with one and the same manifest. docs/inside/local-storage.md
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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

struct LocalDrop {
  int64_t step = 0, epoch = 0;
  std::string manifest_digest;  // only with this manifest; empty: what was not given its published name
};
// Of this node's folder: deletes these of the fence's job, what an earlier deletion left that was cut off, and bases that nothing
// names any more (base_prune.h). One that has another manifest, is of a newer generation than the fence's, or is not published
// and of the fence's own (its ranks may write there) stays. Gone already is fine. What cannot be deleted does not keep the rest:
// the first error comes back.
absl::Status DropLocalCheckpoints(const std::string& root, const std::vector<LocalDrop>& drops, const CheckpointFence& fence);

}  // namespace motley
