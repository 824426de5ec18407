// A job's curve from its first step on, in a few hundred buckets of as many steps each: when they are full, two become one. Its
// size is bounded however long the job runs, and begin, end and the extremes of the loss stay.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/session/profile.h"
#include "common/session/session.h"

namespace motley::coordinator {

// Means over the steps of a bucket that were seen and are finite; NaN where there were none.
struct HistoryBucket {
  float loss, least_loss, most_loss;
  float tokens_per_second, step_seconds, grad_norm, lr;
  float validation_loss;  // the newest of the bucket
};

// Not thread-safe.
class History {
 public:
  static constexpr size_t kMeans = 5;
  static constexpr size_t kMostBuckets = 400;  // a row of the store takes 13 KB then

  // A step that is not behind the last one was done again: it and what came after it are dropped before, but of a bucket that
  // began earlier the extremes stay, and a validation goes. Steps that are missing leave a gap.
  void Add(const StepStats& step);

  // Bucket i is of the steps from i * steps_per_bucket + 1 on.
  const std::vector<HistoryBucket>& buckets() const { return buckets_; }
  int64_t steps_per_bucket() const { return steps_per_bucket_; }
  int64_t last_step() const { return last_step_; }  // 0: none

  // As it is stored. DATA_LOSS: not what ToBytes makes.
  std::string ToBytes() const;
  static absl::StatusOr<History> FromBytes(std::string_view bytes);

 private:
  size_t BucketOf(int64_t step) const { return static_cast<size_t>((step - 1) / steps_per_bucket_); }
  void Halve();
  void GoBackTo(int64_t step);

  std::vector<HistoryBucket> buckets_;
  int64_t steps_per_bucket_ = 1, last_step_ = 0;
  std::array<int64_t, kMeans> counted_{};  // by mean: values in the last bucket
};

}  // namespace motley::coordinator
