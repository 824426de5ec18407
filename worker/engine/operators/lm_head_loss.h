// Output projection and cross entropy together, over chunks of rows: no more than one chunk's logits exist at a time, and
// the backward computes them again.
#pragma once

#include <ATen/core/Tensor.h>

namespace motley::engine {

// normed [rows, hidden] (rows at most one chunk), weight [vocab, hidden], targets [rows] int64. Sum of the rows' cross entropy;
// the rows' terms are in the tensors' dtype (half logits: in float32), their sum is a float64 scalar, left on the device.
at::Tensor LmHeadLossForward(const at::Tensor& normed, const at::Tensor& weight, const at::Tensor& targets);
// Gradient of scale * sum with respect to `normed`; adds to grad_weight, which may be float32 where the others are half.
at::Tensor LmHeadLossBackward(const at::Tensor& normed, const at::Tensor& weight, const at::Tensor& targets, double scale,
                              at::Tensor& grad_weight);

}  // namespace motley::engine
