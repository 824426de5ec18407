// The second half of an epoch: the plan becomes one assignment per device.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/session/assignment.h"
#include "coordinator/core/core.h"

namespace motley::coordinator {

// The epoch number is durable before the first worker hears of it.
absl::Status StartEpoch(Core& core, const std::string& reason);

// One assignment per rank of the plan. INTERNAL: the plan speaks of a device that was not offered.
absl::StatusOr<std::vector<RankAssignment>> MakeAssignments(const ClusterState& state, const JobRun& run, const JobRecord& job);

}  // namespace motley::coordinator
