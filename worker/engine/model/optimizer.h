// AdamW with decoupled weight decay on flat owned ranges: the numbers of torch.optim.AdamW after clip_grad_norm_.
// Not thread-safe; works in place.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "common/job/job.h"
#include "common/model/parameters.h"
#include "worker/engine/operators/own_adamw.h"

namespace motley::engine {

// min(1, max_norm / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_; 1 when max_norm is 0 (no clipping).
double ClipCoefficient(double norm, double max_norm);

// Sum of squares: a float64 scalar, left on the device.
at::Tensor SquaredNorm(const at::Tensor& gradient);

// Consecutive elements of an owned range that the weight decay treats alike.
struct DecayRun {
  int64_t begin = 0, end = 0;  // of the range
  bool decayed = true;
  friend bool operator==(const DecayRun&, const DecayRun&) = default;
};
// Of elements [begin, end) of a unit: ascending, all of them, neighbours joined. optimizer.decay = "matrices" spares tensors of
// one dimension, which are biases and norms.
std::vector<DecayRun> DecayRunsOf(const OptimizerSection& options, const UnitSpec& unit, int64_t begin, int64_t end);

// One step, decaying every element. All tensors one-dimensional, contiguous, of equal length and dtype (float32 or float64; the
// cast in any); length 0 is legal. `step` counts from 1. The gradient is multiplied by `clip`; what is in it afterwards is not
// defined where it does not become zero. `kernels`: the device's own, in one pass; null: none.
void AdamWStep(const OptimizerSection& options, double lr, int64_t step, double clip, const AdamWRange& range,
               const KernelLauncher* kernels = nullptr);

}  // namespace motley::engine
