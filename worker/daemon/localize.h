// The paths of a job whose checkpoints lie on its nodes' disks: the coordinator names checkpoints, this node knows where they
// are. Ranks get paths and know nothing of it. docs/inside/local-storage.md
#pragma once

#include <string>

#include "common/session/session.h"

namespace motley::worker {

// Whether the ranks' checkpoints lie on their nodes' disks.
bool IsLocal(const StartCommand& command);
// With this node's paths, beneath its [files] local: where its ranks save, and what they go on from.
void Localize(const std::string& local, StartCommand& command);

}  // namespace motley::worker
