// How much of the coordinator a job may take, alone and with the others: memory of its description, places in the queue.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "common/job/job.h"
#include "coordinator/core/core.h"

namespace motley::coordinator {

// Of a job's description besides planner.plan_json, which has a limit of its own: the coordinator keeps it as long as the job.
inline constexpr size_t kMaxJobBytes = 256 << 10;

// INVALID_ARGUMENT names the field that takes most.
absl::Status CheckJobSize(const JobConfig& config);
// RESOURCE_EXHAUSTED: the descriptions of the jobs that have not ended, with this one, would take more than `limit_bytes`.
absl::Status CheckRoomForJob(const ClusterState& state, const JobConfig& config, size_t limit_bytes);
// RESOURCE_EXHAUSTED: as many jobs of this account have not ended as it may have (limits.account_jobs). Admins, and callers of
// whom nobody knows who they are, have no limit.
absl::Status CheckJobsOfAccount(const ClusterState& state, const CallingAccount& caller, size_t limit);

}  // namespace motley::coordinator
