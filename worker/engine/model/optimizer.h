// AdamW with decoupled weight decay on flat owned ranges: the numbers of torch.optim.AdamW after clip_grad_norm_.
// Not thread-safe; works in place.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "common/job/job.h"

namespace motley::engine {

// min(1, max_norm / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_; 1 when max_norm is 0 (no clipping).
double ClipCoefficient(double norm, double max_norm);

// Sum of squares: a float64 scalar, left on the device.
at::Tensor SquaredNorm(const at::Tensor& gradient);

// One step. All tensors one-dimensional, contiguous, of equal length and dtype (float32 or float64); length 0 is legal.
// `step` counts from 1. The gradient is multiplied by `clip`; what is in it afterwards is not defined.
void AdamWStep(const OptimizerSection& options, double lr, int64_t step, double clip, at::Tensor& gradient, at::Tensor& parameter,
               at::Tensor& exp_avg, at::Tensor& exp_avg_sq);

}  // namespace motley::engine
