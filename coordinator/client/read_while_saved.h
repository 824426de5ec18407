// Reading a job's checkpoints while the job trains: what was the newest one may be pruned before it is read to its end.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint.h"

namespace motley::client {

// Tries again where `try_once` failed to read, and the checkpoints under `root` are others than before it began: a few times,
// then the error says so. Other errors are the last word.
absl::StatusOr<FoundCheckpoint> ReadWhileSaved(const std::string& root,
                                               const std::function<absl::StatusOr<FoundCheckpoint>()>& try_once);

}  // namespace motley::client
