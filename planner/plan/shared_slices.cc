#include "planner/plan/shared_slices.h"

#include <algorithm>
#include <cstddef>

namespace motley::planner {
namespace {

// The same of so many parts, where it is of all.
ModelSlice OfParts(const ModelSlice& slice, int64_t parts) { return slice.whole() ? ModelSlice{0, parts, parts} : slice; }

}  // namespace

std::vector<SharedSlice> SharedSlicesOf(const std::vector<ModelSlice>& slices, const std::vector<int32_t>& ranks) {
  int64_t parts = 1;
  for (const int32_t rank : ranks) parts = std::max(parts, slices[static_cast<size_t>(rank)].parts);
  std::vector<int64_t> cuts;
  for (const int32_t rank : ranks) {
    const ModelSlice slice = OfParts(slices[static_cast<size_t>(rank)], parts);
    cuts.insert(cuts.end(), {slice.first, slice.end});
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  std::vector<SharedSlice> shared;
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    SharedSlice& between = shared.emplace_back(SharedSlice{{cuts[i], cuts[i + 1], parts}, {}});
    for (const int32_t rank : ranks) {
      const ModelSlice slice = OfParts(slices[static_cast<size_t>(rank)], parts);
      if (slice.first <= between.slice.first && between.slice.end <= slice.end) between.ranks.push_back(rank);
    }
  }
  return shared;
}

std::vector<SliceRun> DividedRunsOf(const UnitSpec& unit, const ModelSlice& slice) {
  std::vector<SliceRun> runs = RunsOf(unit, slice);
  for (SliceRun& run : runs) run.elements = std::clamp<int64_t>(unit.divided_elements - run.in_unit, 0, run.elements);
  std::erase_if(runs, [](const SliceRun& run) { return run.elements == 0; });
  return runs;
}

}  // namespace motley::planner
