// An ended job that goes on: what may be different then.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/job/job.h"
#include "coordinator/state/job.h"

namespace motley::coordinator {

// The ended job, queued again with these settings. INVALID_ARGUMENT has a line for each key that may not change: what the newest
// checkpoint depends on. FAILED_PRECONDITION: there are no steps left to do.
absl::StatusOr<JobRecord> Resumed(const JobRecord& ended, const JobConfig& config, int64_t now_unix_ms);

// The ended job as if it had not come further than to this step: for Resumed. What it saved later is given up, and not waited
// for; what was safe and is not given up still is. INVALID_ARGUMENT: no step, or its checkpoints do not lie on its nodes' disks.
absl::StatusOr<JobRecord> GoneBack(const JobRecord& ended, int64_t from_step);

}  // namespace motley::coordinator
