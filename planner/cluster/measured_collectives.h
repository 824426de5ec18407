// Seconds of collectives among all devices of a cluster, as measured, between the measured sizes and shares.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/session/profile.h"

namespace motley::planner {

enum class Collective { kAllGather, kReduceScatter, kAllReduce };

// What the profiler measures with: the first device has `largest`, the others equal parts of the rest. `devices` >= 2.
std::vector<double> SharesWithLargest(size_t devices, double largest);

// INVALID_ARGUMENT: a point that is not positive and finite, a size and share that is there twice, or a link that
// is none; begins with `where`.
absl::Status Validate(const CollectiveProfile& profile, const std::string& where);

// Immutable after construction, thread-safe.
class MeasuredCollectives {
 public:
  MeasuredCollectives() = default;  // nothing was measured
  // `profile` has passed Validate.
  explicit MeasuredCollectives(const CollectiveProfile& profile);

  bool empty() const { return sizes_.empty(); }
  // Of a whole array of `bytes`. Over shares: linear between those measured, constant outside them. Over bytes: linear, never
  // below zero. An all-reduce takes what a reduce-scatter and an all-gather take. Not empty.
  double Seconds(Collective collective, double bytes, double largest_share) const;
  const std::vector<double>& largest_shares() const { return largest_shares_; }  // ascending, distinct

 private:
  // At one array size, over ascending shares.
  struct Size {
    double bytes = 0;
    std::vector<double> shares, gather_seconds, reduce_seconds;
  };
  double Of(std::vector<double> Size::*seconds, double bytes, double largest_share) const;

  std::vector<Size> sizes_;  // ascending
  std::vector<double> largest_shares_;
};

}  // namespace motley::planner
