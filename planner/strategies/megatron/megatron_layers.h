// How many layers each stage of a pipeline takes so that the slowest stage is as fast as can be.
#pragma once

#include <cstdint>
#include <vector>

namespace motley::planner {

struct StageSpeed {
  double seconds_per_layer = 0;               // of one microbatch, forward and backward
  double extra_seconds = 0;                   // embedding, head
  int64_t least_layers = 1, most_layers = 0;  // what memory allows
};

// Minimises the largest extra + layers x seconds over stages; exact. Of equal choices the earlier stage gets the layer. Empty:
// the layers do not fit within the limits. O(stages x log layers + stages^2).
std::vector<int64_t> BalanceLayers(const std::vector<StageSpeed>& stages, int64_t layers);

}  // namespace motley::planner
