// Who gathers and reduces which elements of a unit together, where its ranks have unlike parts of it: slices of tensor-parallel
// units, or shards. The unit is cut wherever somebody's part ends. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "common/model/model_slice.h"

namespace motley::planner {

// What a rank has of a unit.
struct PartOfUnit {
  int32_t rank = 0;
  std::vector<SliceRun> runs;
};

// Elements that are in one piece in the array of each of `ranks`.
struct SharedPiece {
  std::vector<int32_t> ranks;     // in the order of the parts
  std::vector<int64_t> in_array;  // by rank
  int64_t elements = 0;
};

// Ring by ring, in the order of the unit. All elements that somebody has are in one piece each.
std::vector<SharedPiece> SharedPieces(const std::vector<PartOfUnit>& parts);

}  // namespace motley::planner
