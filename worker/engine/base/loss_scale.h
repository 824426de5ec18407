// The dynamic loss scale of float16: gradients are computed of the loss times the scale, so that small ones do not vanish, and
// divided by it before the optimizer sees them. Numbers and rules are torch.amp.GradScaler's, except that the scale does not fall
// below 1. Every rank keeps its own and comes to the same: what moves it is the step's verdict, which all ranks share.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/base/dtype.h"

namespace motley::engine {

class LossScale {
 public:
  static constexpr double kFirst = 65536, kFactor = 2, kBackoff = 0.5, kLeast = 1;
  static constexpr int64_t kGrowthInterval = 2000;
  // Overflows in a row at the least scale: no scale helps then.
  static constexpr int64_t kMostAtLeast = 10;

  // Of a job that computes in `compute`; scales in float16 alone.
  explicit LossScale(DType compute) : scales_(compute == DType::kFloat16), scale_(scales_ ? kFirst : 1) {}
  // As a checkpoint has it. One that was written in another type has no scale (0), but may have skipped steps.
  void Restore(double scale, int64_t steps_at_scale, int64_t skipped_steps) {
    skipped_steps_ = skipped_steps;
    if (!scales_ || scale <= 0) return;
    scale_ = scale;
    steps_at_scale_ = steps_at_scale;
  }

  bool scales() const { return scales_; }
  double scale() const { return scale_; }                                // 1 where nothing is scaled
  int64_t steps_at_scale() const { return steps_at_scale_; }             // applied since it changed
  int64_t skipped_steps() const { return skipped_steps_; }               // of the whole job: the optimizer's count lacks them
  bool may_skip() const { return scales_ && at_least_ < kMostAtLeast; }  // else an overflow is an error

  void Applied() {
    if (!scales_) return;
    at_least_ = 0;
    if (++steps_at_scale_ < kGrowthInterval) return;
    scale_ *= kFactor;
    steps_at_scale_ = 0;
  }
  void Skipped() {
    ++skipped_steps_;
    if (scale_ == kLeast) ++at_least_;
    scale_ = std::max(kLeast, scale_ * kBackoff);
    steps_at_scale_ = 0;
  }

 private:
  bool scales_;
  double scale_;
  int64_t steps_at_scale_ = 0, skipped_steps_ = 0;
  int64_t at_least_ = 0;  // skipped in a row at the least scale
};

}  // namespace motley::engine
