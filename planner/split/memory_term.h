// A term of a device's peak of activations in closed form. The peak is the largest of
//   sum over microbatches of each(m)  +  once(largest m)
// so that a search can price thousands of splits (option_table.cc adds them up).
#pragma once

#include <cstdint>
#include <vector>

namespace motley::planner {

struct MemoryTerm {
  std::vector<int64_t> each, once;  // by microbatch size, 0 at size 0
};

}  // namespace motley::planner
