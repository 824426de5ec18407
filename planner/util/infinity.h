// What no cost reaches.
#pragma once

#include <limits>

namespace motley::planner {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace motley::planner
