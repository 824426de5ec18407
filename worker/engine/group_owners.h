// What the members of a program's group own of a unit.
#pragma once

#include "common/session/assignment.h"
#include "worker/engine/transport/communicator.h"

namespace motley::engine {

// In the order of the group's ring.
inline Owners OwnersIn(const RankAssignment& assignment, const Program& program, int group, int unit) {
  const std::vector<int64_t>& bounds = assignment.placement[unit].bounds;
  Owners owners;
  for (const int32_t member : program.groups[group]) {
    owners.emplace_back();
    if (bounds[member] < bounds[member + 1]) owners.back().push_back({bounds[member], bounds[member + 1]});
  }
  return owners;
}

}  // namespace motley::engine
