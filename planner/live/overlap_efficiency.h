// What cards that slow down beside their collectives are to the planner. docs/inside/profiles.md, "Compute beside collectives".
#pragma once

#include <vector>

#include "common/session/profile.h"

namespace motley::planner {

// Cluster::overlap_efficiency, by the rank that collectives cost most; 1 where nothing was measured. Pure.
double OverlapEfficiency(const std::vector<Overlap>& overlap);

}  // namespace motley::planner
