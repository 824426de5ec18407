// Saves the state of all ranks as one checkpoint whose files lie on the disks of the ranks' nodes. Called by every rank after the
// same step. docs/inside/local-storage.md
#pragma once

#include "absl/status/status.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/checkpoint_fence.h"
#include "common/session/assignment.h"
#include "worker/engine/base/rank_host.h"
#include "worker/engine/model/state.h"
#include "worker/engine/transport/communicator.h"

namespace motley::engine {

// What all ranks of a save know: `manifest` without files and base.
struct LocalSave {
  const RankAssignment& assignment;
  const ShardedState& state;
  CheckpointManifest manifest;
  CheckpointFence fence;
};

// Every rank writes its file beneath its own node's folder. Rank 0 collects the entries and asks the coordinator by the
// manifest's digest; the answer brings the mark. Then the first rank of every node, rank 0's before the others, publishes the
// same manifest with that mark on its disk (common/checkpoint/local_checkpoint.h). What is deleted there the coordinator says,
// who knows which other nodes have copies. It is published once rank 0's node has it: where another node fails after that its
// log says so, and its file counts for what the manifest says of it. All ranks return the same verdict, which blames the device
// whose node could not write. On failure what was written is removed.
absl::Status SaveOnNodes(const LocalSave& save, Communicator& communicator, RankHost& host);

// Whether the rank is the first of its node's.
bool IsFirstOfNode(const RankAssignment& assignment);

}  // namespace motley::engine
