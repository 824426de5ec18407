// Does this node see the same data and checkpoint folder as the others? Summarises the data, and writes or reads back a
// token in the checkpoint folder.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "proto/motley/v1/worker.pb.h"

namespace motley::worker {

// Blocks while it reads the data. A reader waits up to `patience` for the token (shared file systems are late). The result
// carries the error in words, and never fails otherwise. The token's file is TokenPath; whoever wrote it removes it.
v1::StorageCheckResult CheckStorage(const v1::StorageCheck& check, absl::Duration patience);

std::string TokenPath(const std::string& checkpoint_folder, const std::string& job_id);

}  // namespace motley::worker
