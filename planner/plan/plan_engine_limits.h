// How much of the plan language a search may use, and how much of it the engine runs today. Searches ask before they choose
// (Setting::limits); ValidateForEngine (plan.h) holds any plan against what the engine runs.
#pragma once

#include "absl/status/status.h"
#include "common/model/model.h"

namespace motley::planner {

struct Plan;

struct PlanLimits {
  bool tp_as_run = false;        // units of several are cut as the engine needs it (unit_slices.h)
  bool offload = true;           // parameters, optimizer or activations to host memory
  const char* who = "all take";  // whose limits they are, for people
};

inline constexpr PlanLimits kWholeLanguage = {};
inline constexpr PlanLimits kEngineLimits = {.tp_as_run = true, .offload = false, .who = "the engine runs"};

// UNIMPLEMENTED: what is beyond the limits; names the part of the plan, which has passed Validate. Errors of CheckTensorParallel.
absl::Status ValidateWithin(const PlanLimits& limits, const Plan& plan, const ModelShape& model);

}  // namespace motley::planner
