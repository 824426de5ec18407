#include "planner/lowering/shared_elements.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

namespace motley::planner {
namespace {

std::vector<int64_t> BordersOf(const std::vector<PartOfUnit>& parts) {
  std::vector<int64_t> borders;
  for (const PartOfUnit& part : parts) {
    for (const SliceRun& run : part.runs) borders.insert(borders.end(), {run.in_unit, run.in_unit + run.elements});
  }
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  return borders;
}

// Behind the ring's last piece, where it goes on in all arrays.
bool GoesOn(const SharedPiece& piece, const SharedPiece& next) {
  for (size_t i = 0; i < piece.ranks.size(); ++i) {
    if (piece.in_array[i] + piece.elements != next.in_array[i]) return false;
  }
  return true;
}

}  // namespace

std::vector<SharedPiece> SharedPieces(const std::vector<PartOfUnit>& parts) {
  const std::vector<int64_t> borders = BordersOf(parts);
  std::vector<std::vector<SharedPiece>> rings;  // each of the same ranks
  std::vector<size_t> at(parts.size(), 0);      // the run that ends behind the border, by part
  for (size_t b = 0; b + 1 < borders.size(); ++b) {
    SharedPiece piece{.ranks = {}, .in_array = {}, .elements = borders[b + 1] - borders[b]};
    for (size_t p = 0; p < parts.size(); ++p) {
      const std::vector<SliceRun>& runs = parts[p].runs;
      while (at[p] < runs.size() && runs[at[p]].in_unit + runs[at[p]].elements <= borders[b]) ++at[p];
      if (at[p] == runs.size() || runs[at[p]].in_unit > borders[b]) continue;
      piece.ranks.push_back(parts[p].rank);
      piece.in_array.push_back(runs[at[p]].in_slice + borders[b] - runs[at[p]].in_unit);
    }
    if (piece.ranks.empty()) continue;
    const auto ring = std::find_if(rings.begin(), rings.end(), [&](const auto& r) { return r.front().ranks == piece.ranks; });
    if (ring == rings.end()) {
      rings.push_back({std::move(piece)});
    } else if (GoesOn(ring->back(), piece)) {
      ring->back().elements += piece.elements;
    } else {
      ring->push_back(std::move(piece));
    }
  }
  std::vector<SharedPiece> pieces;
  for (std::vector<SharedPiece>& ring : rings) std::move(ring.begin(), ring.end(), std::back_inserter(pieces));
  return pieces;
}

}  // namespace motley::planner
