// Deleting bases (common/weights/base_model.h) that no checkpoint names any more.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/checkpoint/checkpoint_fence.h"

namespace motley {

// Of the fence's job alone: what older epochs of it left unfinished and, with `published`, the bases that it keeps and no other
// job does, as their marks say, and that no published checkpoint in `root` names, whoever's. Those that builds from before wrote
// have no mark and stay. Nothing goes while a checkpoint cannot be read that may name it. Asks before each deletion.
absl::Status PruneBases(const std::string& root, bool published, const CheckpointFence& fence);

}  // namespace motley
