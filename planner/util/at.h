// An index of the plan's language (int) as one of a vector.
#pragma once

#include <cstddef>

namespace motley::planner {

inline size_t At(int i) { return static_cast<size_t>(i); }

}  // namespace motley::planner
