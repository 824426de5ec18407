// What a job was or would be planned from, as texts that `motley plan` reads like files.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/job/job.h"
#include "planner/live/live_inputs.h"
#include "proto/motley/v1/motley.pb.h"

namespace motley::coordinator {

// Errors of ResolveModel.
absl::StatusOr<v1::GetPlanningInputsResponse> PlanningInputsOf(const planner::LiveInputs& inputs, const JobConfig& config);

// As the store keeps them. Empty, and read as nothing: a plan of an older coordinator.
std::string ToJson(const v1::GetPlanningInputsResponse& inputs);
v1::GetPlanningInputsResponse PlanningInputsFromJson(const std::string& json);

}  // namespace motley::coordinator
