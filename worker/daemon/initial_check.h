// What a node sees of the weights that a job is to begin with (checkpoint.initial).
#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/base/beneath.h"
#include "common/session/session.h"

namespace motley::worker {

// That they lie beneath a root. Of a folder of HuggingFace's it reads headers and samples, and the report has their digests; what
// is wrong with it is the error. Checkpoints are the coordinator's to look at.
absl::Status CheckInitial(const std::string& path, const FileRoots& roots, StorageReport* report);

}  // namespace motley::worker
