// Devices that may change places in a plan without a difference: the same card in the same node.
#pragma once

#include <vector>

#include "planner/setting/setting.h"

namespace motley::planner {

// By device: the first one that is like it, itself where none before is. Devices that are pinned, or of nodes in which links
// differ, are like no other.
std::vector<int> FirstAlike(const Setting& setting);

// The groups with every device replaced by the first that is like it: equal for groupings that are the same but for names. The
// order of groups counts.
std::vector<std::vector<int>> LookOf(const std::vector<int>& first_alike, std::vector<std::vector<int>> groups);

}  // namespace motley::planner
