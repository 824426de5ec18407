// Which samples of the microbatches were handed over at the borders between units. Part of Validate (program.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "common/program/disjoint_ranges.h"

namespace motley {

class HandedSamples {
 public:
  // Of one microbatch at the border before `unit`.
  struct Place {
    DisjointRanges samples;
    int last = -1;  // instruction; a lane keeps their order
  };
  using Range = DisjointRanges::Range;

  // Samples [first, end) by `instruction`. What of them was handed over before; then nothing is added.
  std::optional<Range> Add(int32_t unit, int32_t microbatch, Range range, int instruction);
  const Place& At(int32_t unit, int32_t microbatch) const;

 private:
  std::map<std::pair<int32_t, int32_t>, Place> places_;  // by unit and microbatch
};

}  // namespace motley
