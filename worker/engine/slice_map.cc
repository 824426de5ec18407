#include "worker/engine/slice_map.h"

#include <algorithm>

namespace motley::engine {

SliceMap::SliceMap(const ModelShape& model, const ModelSlice& slice) {
  for (const UnitSpec& unit : ParameterLayout(model)) runs_.push_back(RunsOf(unit, slice));
}

ElementRange SliceMap::Within(int32_t unit, const ArrayRange& elements) const {
  if (elements.whole()) return {0, NumElements(unit)};
  return {elements.first, elements.end()};
}

std::vector<LocalPiece> SliceMap::PiecesOf(int32_t unit, int64_t begin, int64_t end, const ElementRange& within) const {
  std::vector<LocalPiece> pieces;
  for (const SliceRun& run : runs_[static_cast<size_t>(unit)]) {
    const int64_t to_slice = run.in_slice - run.in_unit;
    const int64_t from = std::max({begin, run.in_unit, within.begin - to_slice});
    const int64_t to = std::min({end, run.in_unit + run.elements, within.end - to_slice});
    if (from < to) pieces.push_back({from - begin, from + to_slice - within.begin, to - from});
  }
  return pieces;
}

std::vector<LocalPiece> SliceMap::PiecesOf(int32_t unit, int64_t begin, int64_t end) const {
  return PiecesOf(unit, begin, end, Within(unit, ArrayRange()));
}

Owners SliceMap::OwnersIn(const OwnedRanges& ranges, const std::vector<int32_t>& members, int32_t unit,
                          const ElementRange& within) const {
  Owners owners;
  for (const int32_t member : members) {
    owners.emplace_back();
    for (const OwnedRange& range : ranges) {
      if (range.rank != member) continue;
      for (const LocalPiece& piece : PiecesOf(unit, range.begin, range.end, within)) {
        owners.back().push_back({piece.in_array, piece.in_array + piece.elements});
      }
    }
  }
  return owners;
}

}  // namespace motley::engine
