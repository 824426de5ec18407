// What only grows is cut: finished jobs, events, epochs and profiles beyond what the configuration keeps, a few at a time.
#pragma once

#include <vector>

#include "coordinator/core.h"

namespace motley::coordinator {

// Finished jobs that are kept no longer, oldest first, at most `limit`: beyond the newest so many, or older than so many days.
std::vector<JobId> JobsToForget(int64_t now_unix_ms, const ClusterState& state, const RetentionConfig& config, size_t limit);

// Their id may be used again; their checkpoints are not touched.
void Retain(Core& core);

}  // namespace motley::coordinator
