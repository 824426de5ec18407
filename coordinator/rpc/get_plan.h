// GetPlan: of the newest epoch that was planned.
#pragma once

#include "absl/status/status.h"
#include "coordinator/core/core.h"
#include "proto/motley/v1/motley.pb.h"

namespace motley::coordinator {

// NOT_FOUND: no such job, or it was not planned yet. INVALID_ARGUMENT: a field is asked for that a plan does not have.
absl::Status GetPlan(Core& core, const v1::GetPlanRequest& request, v1::GetPlanResponse* response);

}  // namespace motley::coordinator
