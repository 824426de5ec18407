// Ways to divide a cluster's devices into groups that share layers: candidates from the tree region / node / kind.
//
// The leaves are a node's devices of one kind. Candidates are runs of equal leaves (every kind, region, or all of them in so many
// parts), parts of a leaf where a node alone should be several stages, and the partitions on the way when the best connected
// leaves are merged until one group is left. Deterministic, without duplicates, at most kMostGroupings; coarse ones first.
#pragma once

#include <string>
#include <vector>

#include "planner/setting/setting.h"

namespace motley::planner {

struct Grouping {
  std::vector<std::vector<int>> groups;  // of the setting's devices, all of them; ascending, groups by their first device
  std::string from;                      // for people: "by kind", "nodes merged by rate"
};

inline constexpr int kMostGroupings = 96;

// Never more groups than the model has layers, as far as a candidate allows; the whole cluster as one group is always the first.
std::vector<Grouping> CandidateGroupings(const Setting& setting);

// The grouping changed so that the devices pinned to one stage form or lie in one group. `pinned`: Setting::pinned_stage.
Grouping WithPins(Grouping grouping, const std::vector<int>& pinned);

// `order` (of groups, by preference) rearranged so that pinned groups stand at their stage. Empty: there are too few groups.
std::vector<int> OrderWithPins(const Grouping& grouping, const std::vector<int>& pinned, const std::vector<int>& order);

}  // namespace motley::planner
