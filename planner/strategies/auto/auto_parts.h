// Parts of a cluster that auto searches as if each were the whole: no part shall plan faster than all of it.
// docs/inside/strategies/auto.md, "A part never beats the whole".
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/setting/setting.h"

namespace motley::planner {

struct ClusterPart {
  std::vector<int> devices;  // ascending; with every pinned one
  std::string nodes;         // "n0, n2"
  double bound_seconds = 0;  // no plan of the part takes less; 0: not asked
};

inline constexpr size_t kMostNodes = 6;  // all sets of them: 62; and as many kinds of nodes

ClusterPart PartOf(const Setting& setting, const std::set<int>& nodes);
// Whose devices the plan uses.
std::set<int> NodesOf(const Setting& setting, const Plan& plan);

// Of a cluster of up to six nodes every set of them but all, of alike nodes the first ones. Of a larger one sets of its kinds of
// nodes, where there are up to six: alike nodes are in or out together. Otherwise, and where a single node is all: none. The
// least bound first.
std::vector<ClusterPart> PartsOf(const Setting& setting);

}  // namespace motley::planner
