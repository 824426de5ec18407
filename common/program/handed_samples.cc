#include "common/program/handed_samples.h"

#include <algorithm>
#include <iterator>

namespace motley {

std::optional<HandedSamples::Range> HandedSamples::Add(int32_t unit, int32_t microbatch, Range range, int instruction) {
  const auto [first, end] = range;
  Place& place = places_[{unit, microbatch}];
  // They are disjoint: of those that begin before `end`, the last one ends last.
  const auto next = place.ranges.lower_bound(end);
  if (next != place.ranges.begin() && std::prev(next)->second > first) {
    const auto& [other_first, other_end] = *std::prev(next);
    return Range(std::max(first, other_first), std::min(end, other_end));
  }
  place.ranges.emplace(first, end);
  place.samples += end - first;
  place.last = instruction;
  return std::nullopt;
}

const HandedSamples::Place& HandedSamples::At(int32_t unit, int32_t microbatch) const {
  static const Place kNone;
  const auto found = places_.find({unit, microbatch});
  return found == places_.end() ? kNone : found->second;
}

}  // namespace motley
