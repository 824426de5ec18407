// How much of the plan language a search may use, and how much of it the engine runs today. Searches ask before they choose
// (Setting::limits); ValidateForEngine (plan.h) holds any plan against what the engine runs.
#pragma once

#include "absl/status/status.h"
#include "common/program/offload_kinds.h"

namespace motley::planner {

struct Plan;

struct PlanLimits {
  OffloadKinds offload = OffloadKinds::All();  // what may wait in host memory
  const char* who = "all take";                // whose limits they are, for people
};

inline constexpr OffloadKinds kEngineOffloads = {.activations = true};

inline constexpr PlanLimits kWholeLanguage = {};
inline constexpr PlanLimits kEngineLimits = {.offload = kEngineOffloads, .who = "the engine runs"};

// UNIMPLEMENTED: what is beyond the limits; names the rank and the kinds.
absl::Status ValidateWithin(const PlanLimits& limits, const Plan& plan);

}  // namespace motley::planner
