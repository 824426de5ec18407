// Divisions that leave slow devices out: where links are slow, a step without them may be the shorter one.
#pragma once

#include <vector>

#include "planner/groups/groupings.h"
#include "planner/setting/setting.h"

namespace motley::planner {

// The groupings, then each without the slowest kinds (one, two, ... all but the fastest) and without the slowest nodes (one, two,
// a quarter, half, three quarters, all but one; by their devices' speed together). Up to five devices: every division of every
// part of them. Without duplicates; pinned devices stay.
std::vector<Grouping> WithSlowLeftOut(const Setting& setting, std::vector<Grouping> groupings);

}  // namespace motley::planner
