// All ways in which one kind of device can process b samples, for b up to a limit, without those that another way beats in
// forward time, backward time and memory together.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/strategies/split_problem.h"

namespace motley::planner {

struct Option {
  double forward = 0, backward = 0;  // seconds
  int64_t bytes = 0;
  int32_t microbatch = 0;
  bool recompute = false;
};

class OptionTable {
 public:
  // Ways to process 0..limit samples within kind.capacity_bytes; limit at most the length of kind's vectors.
  OptionTable(const SplitKind& kind, int64_t limit);

  int64_t limit() const { return limit_; }
  int count() const { return count_; }
  int64_t capacity() const { return capacity_; }
  // Pareto-optimal ways, least memory first. b = 0 has one way that costs nothing.
  struct Range {
    const Option* first;
    const Option* last;
    const Option* begin() const { return first; }
    const Option* end() const { return last; }
  };
  Range Ways(int64_t batch) const {
    const size_t b = static_cast<size_t>(batch);
    return {options_.data() + starts_[b], options_.data() + starts_[b + 1]};
  }
  const std::vector<Option>& all() const { return options_; }
  // No batch above this can meet the bounds (some below may not either).
  int64_t LargestBatch(double forward_bound, double backward_bound) const;

 private:
  int64_t limit_;
  int count_;
  int64_t capacity_;
  std::vector<Option> options_;
  std::vector<size_t> starts_;                          // by batch
  std::vector<double> forward_floor_, backward_floor_;  // by batch: least seconds of this or any larger batch
};

// Least seconds per sample at any microbatch: b samples cannot take less than b times this.
struct SampleRates {
  double forward = 0, backward = 0, both = 0;
};
SampleRates LeastSecondsPerSample(const SplitKind& kind);

}  // namespace motley::planner
