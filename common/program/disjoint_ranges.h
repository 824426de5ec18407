// Ranges of integers of which none overlap: which samples were handed over, which elements were gathered. Part of Validate
// (program.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

namespace motley {

class DisjointRanges {
 public:
  using Range = std::pair<int64_t, int64_t>;  // [first, end)

  // What of `range` is there already; then nothing is added.
  std::optional<Range> Add(Range range);
  int64_t total() const { return total_; }

 private:
  std::map<int64_t, int64_t> ranges_;  // end by first
  int64_t total_ = 0;
};

}  // namespace motley
