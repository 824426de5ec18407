#include "common/program/disjoint_ranges.h"

#include <algorithm>
#include <iterator>

namespace motley {

std::optional<DisjointRanges::Range> DisjointRanges::Add(Range range) {
  const auto [first, end] = range;
  // They are disjoint: of those that begin before `end`, the last one ends last.
  const auto next = ranges_.lower_bound(end);
  if (next != ranges_.begin() && std::prev(next)->second > first) {
    const auto& [other_first, other_end] = *std::prev(next);
    return Range(std::max(first, other_first), std::min(end, other_end));
  }
  ranges_.emplace(first, end);
  total_ += end - first;
  return std::nullopt;
}

}  // namespace motley
