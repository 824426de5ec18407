// SPLIT: partitions of a graph into 1, 2, ... k parts with little weight between the parts.
//
// Saran and Vazirani (SIAM J. Comput.'95), as Zorse section 3.3.2 uses it: the lightest of all parts' minimum cuts is made, again
// and again; within 2 - 2/k of the lightest k-cut. One run gives the partitions for every k. A part's minimum cut is found once,
// so the cost is O(n^3) a cut and O(k n^3) in all.
//
// On rates of real clusters the minimum cut is mostly one badly connected GPU against all others, for a cut of one vertex has the
// fewest edges. Groups then differ by single GPUs; groupings.h therefore has candidates from the cluster's tree as well.
#pragma once

#include <vector>

#include "planner/groups/min_cut.h"

namespace motley::planner {

// A partition: parts ascending inside, ordered by their first vertex.
using Parts = std::vector<std::vector<int>>;

// Entry k - 1 has k parts, k = 1 .. min(most_parts, number of vertices). Empty graph or most_parts < 1: none.
std::vector<Parts> SplitCuts(const EdgeWeights& weights, int most_parts);

}  // namespace motley::planner
