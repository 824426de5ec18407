// What a search spent of its budget, by step: the same on every host.
#pragma once

#include <cstdint>
#include <string>

namespace motley::planner {

struct SpentNodes {
  int64_t turns = 0;     // pipelines in turn
  int64_t layered = 0;   // layered ones
  int64_t prices = 0;    // of what climbs
  int64_t climbing = 0;  // of all climbers
  int64_t parts = 0;     // of the cluster, all steps of all of them

  int64_t Total() const { return turns + layered + prices + climbing + parts; }
};

// "412345 search nodes: 251000 for pipelines in turn, ..."; steps that took nothing are left out.
std::string ToText(const SpentNodes& spent);

}  // namespace motley::planner
