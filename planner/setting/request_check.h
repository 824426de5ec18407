// Whether a plan does what its user asked for beyond being fast: pins, tensor-parallel width, ZeRO stage.
#pragma once

#include "absl/status/status.h"
#include "planner/plan/plan.h"
#include "planner/setting/setting.h"

namespace motley::planner {

// FAILED_PRECONDITION names the strategy, the device and the request that it does not follow. `zero_stage_too`: also stages of
// several units must have the requested ZeRO stage (strategies that fix theirs are not held to it).
absl::Status FollowsRequest(const Setting& setting, const Plan& plan, bool zero_stage_too);

}  // namespace motley::planner
