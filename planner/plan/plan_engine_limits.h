// How much of the plan language a search may use, and how much of it the engine runs today. Searches ask before they choose
// (Setting::limits); ValidateForEngine (plan.h) holds any plan against what the engine runs.
#pragma once

#include "absl/status/status.h"

namespace motley::planner {

struct Plan;

struct PlanLimits {
  bool offload = true;           // parameters, optimizer or activations to host memory
  const char* who = "all take";  // whose limits they are, for people
};

inline constexpr PlanLimits kWholeLanguage = {};
inline constexpr PlanLimits kEngineLimits = {.offload = false, .who = "the engine runs"};

// UNIMPLEMENTED: what is beyond the limits; names the rank.
absl::Status ValidateWithin(const PlanLimits& limits, const Plan& plan);

}  // namespace motley::planner
