// What the members of a program's group own of a block.
#pragma once

#include "common/session/assignment.h"
#include "worker/engine/transport/communicator.h"

namespace motley::engine {

// In the order of the group's ring.
inline Owners OwnersIn(const RankAssignment& assignment, const Program& program, int group, int block) {
  Owners owners;
  for (const int32_t member : program.groups[group]) {
    owners.emplace_back();
    for (const OwnedRange& range : assignment.ownership.Of(block)) {
      if (range.rank == member) owners.back().push_back({range.begin, range.end});
    }
  }
  return owners;
}

}  // namespace motley::engine
