// What was measured of compute beside collectives, for people.
#pragma once

#include <string>
#include <vector>

#include "common/session/profile.h"

namespace motley {

// The largest of all ranks: "compute takes up to 1.12 times as long beside collectives, collectives 1.3 times beside compute";
// empty: not measured.
std::string OverlapText(const std::vector<Overlap>& overlap);

}  // namespace motley
