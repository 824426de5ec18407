// Programs whose state waits in host memory, made of ranks' programs whose state does not: what the engine runs, whoever lowers
// it.
#pragma once

#include "absl/status/statusor.h"
#include "common/program/offload_kinds.h"
#include "common/session/assignment.h"

namespace motley::engine {

struct StateOnHost {
  OffloadKinds kinds;    // of state; inputs that wait do so as before
  bool in_turn = false;  // units are stepped as soon as they are summed
  // In turn, and gradients do not leave: the sums stay in their buffers until then; else in homes and shards, as before.
  bool from_buffers = true;
};

// The same rank with such programs. Homes of what leaves become buffers of their units. FAILED_PRECONDITION: it keeps shards
// among the ranks of groups, or the program would not pass Validate: units are summed more than once, and sums are to leave.
absl::StatusOr<RankAssignment> WithStateOnHost(RankAssignment assignment, const StateOnHost& how);

}  // namespace motley::engine
