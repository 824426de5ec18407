// GetPlanningInputs: the live cluster as files that plan without it.
#pragma once

#include "absl/status/status.h"
#include "coordinator/core/core.h"
#include "proto/motley/v1/motley.pb.h"

namespace motley::coordinator {

// Of the devices that a plan of this job may use now: nodes that are connected and not drained, devices not left out. NOT_FOUND:
// no such job. FAILED_PRECONDITION: no device, none that was measured for this job, or links nobody knows; says what to do.
absl::Status GetPlanningInputs(Core& core, const v1::GetPlanningInputsRequest& request, v1::GetPlanningInputsResponse* response);

}  // namespace motley::coordinator
