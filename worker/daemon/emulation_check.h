// Whether what worker.toml says of emulated memory can be.
#pragma once

#include "absl/status/status.h"
#include "worker/daemon/config.h"

namespace motley::worker {

// INVALID_ARGUMENT: a part of memory that is none, or one where nothing is emulated; names the key.
absl::Status CheckTrueMemory(const WorkerConfig& config);

}  // namespace motley::worker
