// Brings what a node's ranks go on from: makes the resume folder (common/checkpoint/resume_folder.h) of the command's source.
#pragma once

#include "absl/status/status.h"
#include "common/session/session.h"
#include "worker/files/bring.h"

namespace motley::worker {

// Own files first; else each file's needed blocks from its holders. With CheckpointSource::verify blocks of own files that are
// not what the manifest says come from others, too. Errors as CheckpointBringer's. INVALID_ARGUMENT: of the command.
absl::Status Stage(const StartCommand& command, const Bringing& bringing);

}  // namespace motley::worker
