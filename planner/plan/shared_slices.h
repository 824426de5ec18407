// Who has what of a block that several ranks compute with, where they have unlike slices of the model: its divided tensors are
// cut wherever one of the slices ends (HexiScale's pipelines, stages of unlike units). Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "common/model/model_slice.h"
#include "common/model/parameters.h"

namespace motley::planner {

// Parts of the model, and the ranks that have them: `slice` lies in the slice of each.
struct SharedSlice {
  ModelSlice slice;
  std::vector<int32_t> ranks;
};
// Ascending, neither hole nor overlap. `slices`: by rank; `ranks`: which of them, in the order that the result keeps.
std::vector<SharedSlice> SharedSlicesOf(const std::vector<ModelSlice>& slices, const std::vector<int32_t>& ranks);

// The runs of a slice in the unit's divided tensors: RunsOf without what is not divided.
std::vector<SliceRun> DividedRunsOf(const UnitSpec& unit, const ModelSlice& slice);

}  // namespace motley::planner
