// Which of a unit's measured points look disturbed: a host that was busy for a moment makes one of two neighbours wrong.
#pragma once

#include <cstddef>
#include <set>
#include <vector>

#include "common/session/profile.h"

namespace motley::engine {

// Indices of `points`, whose microbatches double. Time rises with the samples, and not faster than they do. Where a figure falls,
// the smaller size looks disturbed; where it rises faster, the larger.
std::set<size_t> RoughPoints(const std::vector<ComputePoint>& points);

// Of each figure the faster; bytes are `a`'s.
ComputePoint Fastest(ComputePoint a, const ComputePoint& b);

}  // namespace motley::engine
