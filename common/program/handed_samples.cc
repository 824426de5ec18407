#include "common/program/handed_samples.h"

namespace motley {

std::optional<HandedSamples::Range> HandedSamples::Add(int32_t unit, int32_t microbatch, Range range, int instruction) {
  Place& place = places_[{unit, microbatch}];
  const std::optional<Range> twice = place.samples.Add(range);
  if (!twice) place.last = instruction;
  return twice;
}

const HandedSamples::Place& HandedSamples::At(int32_t unit, int32_t microbatch) const {
  static const Place kNone;
  const auto found = places_.find({unit, microbatch});
  return found == places_.end() ? kNone : found->second;
}

}  // namespace motley
