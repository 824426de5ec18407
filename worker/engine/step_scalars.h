// The few numbers that ranks exchange once a step, and what they mean together. Torch-free.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "common/base/ids.h"

namespace motley::engine {

// Where a value that is not finite was first seen, in the order of a step: forward of units 0..n-1, backward of n-1..0, then
// the summed gradients of unit 0..n-1 at their owners. Comparable: the least of all ranks is the origin.
inline constexpr int64_t kFinite = std::numeric_limits<int32_t>::max();
inline int64_t ForwardPosition(int unit) { return unit; }
inline int64_t BackwardPosition(int unit, int num_units) { return 2 * num_units - 1 - unit; }
inline int64_t GradientPosition(int unit, int num_units) { return 2 * num_units + unit; }
// "the forward of layer 3"
std::string DescribePosition(int64_t position, int num_units);

struct StepScalars {
  double loss_sum = 0;      // over this rank's valid tokens
  double tokens = 0;        // valid ones
  double squared_norm = 0;  // of the owned gradients
  int64_t not_finite = kFinite;
  bool stop = false, save = false;
  bool checkpoint = false;
  double trained_tokens = 0;  // targets of the whole step that count, as this rank reads the data
  bool touched = false;       // it noticed that a file of the data was altered, and nobody knows whether in its contents

  std::vector<double> ToVector() const {
    return {loss_sum,           tokens,           squared_norm,           static_cast<double>(not_finite),
            stop ? 1.0 : 0.0,   save ? 1.0 : 0.0, checkpoint ? 1.0 : 0.0, trained_tokens,
            touched ? 1.0 : 0.0};
  }
};

// Sums in rank order, so every rank gets the same bits.
struct SummedScalars {
  StepScalars sum;
  int first_not_finite_rank = -1;       // where sum.not_finite comes from
  std::vector<int64_t> trained_tokens;  // by rank; all read the same data

  explicit SummedScalars(const std::vector<std::vector<double>>& by_rank);
  SummedScalars() = default;
  double loss() const { return sum.tokens > 0 ? sum.loss_sum / sum.tokens : 0; }
  double norm() const { return std::sqrt(sum.squared_norm); }
  // Whether all ranks count the same, and something of it: a mean over nothing is none, and over unlike numbers no common one.
  bool counts() const;
  bool finite() const { return std::isfinite(sum.loss_sum) && std::isfinite(sum.squared_norm) && sum.not_finite == kFinite; }
};

}  // namespace motley::engine
