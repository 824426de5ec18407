// Groupings of a pipeline's devices by METIS (HexiScale, arXiv 2409.01143 section 4.3), beside its natural pieces: a node's
// devices of one kind.
#pragma once

#include <vector>

#include "planner/groups/min_cut.h"
#include "planner/groups/split_cut.h"

namespace motley::planner {

// For each number of groups: the groups, each as runs of the pieces. `rates`: of all devices. `pieces` hold `devices`.
std::vector<std::vector<Parts>> MetisGroups(const EdgeWeights& rates, const std::vector<int>& devices, const Parts& pieces);

}  // namespace motley::planner
