// How much of the plan language a search may use, and how much of it the engine runs today. Searches ask before they choose
// (Setting::limits); ValidateForEngine (plan.h) holds any plan against what the engine runs.
#pragma once

#include "absl/status/status.h"
#include "common/program/offload_kinds.h"

namespace motley::planner {

struct Plan;

struct PlanLimits {
  OffloadKinds offload = OffloadKinds::All();         // what may wait in host memory
  OffloadKinds with_pipelines = OffloadKinds::All();  // of that, where there are several pipelines
  bool steps_in_turn = true;                          // Plan::optimizer_steps; a job that clips or scales has none
  const char* who = "all take";                       // whose limits they are, for people
};

// Several pipelines keep parameters and gradients, whole or in shards, between two uses of them.
inline constexpr OffloadKinds kEngineOffloadsWithPipelines = {.activations = true, .optimizer = true};

inline constexpr PlanLimits kWholeLanguage = {};
inline constexpr PlanLimits kEngineLimits = {.with_pipelines = kEngineOffloadsWithPipelines, .who = "the engine runs"};

// UNIMPLEMENTED: what is beyond the limits; names the rank and the kinds.
absl::Status ValidateWithin(const PlanLimits& limits, const Plan& plan);

}  // namespace motley::planner
