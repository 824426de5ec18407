// What only grows is cut: finished jobs, events, epochs and profiles beyond what the configuration keeps, a few at a time.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "coordinator/core/core.h"

namespace motley::coordinator {

// Of finished jobs: how long ago they ended, as the steady clock counted (core/counted_time.h).
using JobAges = std::map<JobId, absl::Duration>;

// Finished jobs that are kept no longer, oldest first, at most `limit`: beyond the newest so many, or older than so many days.
std::vector<JobId> JobsToForget(const JobAges& ages, const ClusterState& state, const RetentionConfig& config, size_t limit);

// These ended jobs now, with an event that says `message`; a new job of such an id begins above its epochs.
absl::Status Forget(Core& core, std::vector<JobId> jobs, const std::string& message, Batch batch = Batch());

// Their id may be used again; their checkpoints are not touched.
void Retain(Core& core);

}  // namespace motley::coordinator
