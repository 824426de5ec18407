// Where formats 1 and 2 have the elements of a unit: in HuggingFace's order, every matrix as HuggingFace has it. Since format 3
// the order is that of common/model/parameters.h.
#pragma once

#include <cstdint>
#include <vector>

#include "common/model/model.h"

namespace motley {

// Consecutive elements of the old array, and where they are now: the first at `at` from the begin of the range that was asked
// for, each next one `stride` further.
struct OldRun {
  int64_t begin = 0, elements = 0;
  int64_t at = 0, stride = 1;
};
// Elements [begin, end) of a unit's array, tensor by tensor; within a tensor ascending in the old array. Of a matrix that is
// turned a run is a part of one of its old rows, and a range of few rows has pieces of all of them.
std::vector<OldRun> OldRunsOf(const ModelShape& shape, int unit, int64_t begin, int64_t end);

}  // namespace motley
