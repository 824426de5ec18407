// What is known of a job on some devices: the model, and what was measured of each device and of all together.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/core/core.h"
#include "planner/live/live_inputs.h"

namespace motley::coordinator {

// The devices that were measured for this job's model, sequence and dtype, of those given; their profiles beside them.
// Profiles in `fresh` count where the store has none yet. Collectives have no points where exactly these devices were not
// measured together: `measured` are then those of the job's devices that last were, and links are predicted where the job itself
// runs on such a plan. Errors of the store other than NOT_FOUND, of the model.
absl::StatusOr<planner::PlannerInput> MakePlannerInput(Core& core, const JobRecord& job,
                                                       const std::vector<DeviceDescription>& devices,
                                                       const std::vector<ComputeProfile>& fresh = {});

}  // namespace motley::coordinator
