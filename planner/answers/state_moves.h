// Which bytes of training state change their device between two plans: what a change of plan costs before the first step.
//
// Counted is what only the owners have: master copy and moments (12 bytes a parameter, 24 in float64). What else a rank holds,
// its plan's own collectives bring at the next step. Who owns what is OwnershipOf the plan (planner/plan/ownership.h).
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/model.h"
#include "planner/plan/plan.h"

namespace motley::planner {

struct StateMove {
  DeviceId from, to;
  int64_t bytes = 0;
};

// Sorted by device names. A holder on the receiver's node is preferred as the source, then the one that sends the least so far.
// `model` may be nullptr where a plan has its ownership, which tells the sizes. INVALID_ARGUMENT: sizes are not known, plans of
// different models, or a plan of no shape at all; Validate says it better where the model is at hand.
absl::StatusOr<std::vector<StateMove>> FindStateMoves(const Plan& before, const Plan& after, const ModelShape* model);

}  // namespace motley::planner
