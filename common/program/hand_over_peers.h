// Whom a rank's programs hand over to, and from whom they receive.
#pragma once

#include <set>

#include "common/program/program.h"

namespace motley {

struct HandOverPeers {
  std::set<int> sends_to, receives_from;
};

HandOverPeers HandOverPeersOf(const Program& training, const Program& evaluation);

}  // namespace motley
