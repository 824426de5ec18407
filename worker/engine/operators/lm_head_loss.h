// Output projection and cross entropy together, over chunks of rows: no more than one chunk's logits exist at a time. What trains
// makes loss and gradients from the same logits; a part of the vocabulary makes them again for its gradients.
#pragma once

#include <ATen/core/Tensor.h>

#include "worker/engine/operators/own_head_loss.h"

namespace motley::engine {

// normed [rows, hidden] (rows at most one chunk), weight [vocab, hidden], targets [rows] int64. Sum of the rows' cross entropy;
// the rows' terms are in the tensors' dtype (half logits: in float32), their sum is a float64 scalar, left on the device.
// `kernels`: the device's own; null: none.
at::Tensor LmHeadLossForward(const at::Tensor& normed, const at::Tensor& weight, const at::Tensor& targets,
                             const KernelLauncher* kernels = nullptr);
struct LmHeadGradient {
  at::Tensor normed;  // of scale * sum
  at::Tensor loss;    // the sum, LmHeadLossForward's to the bit
};
// Adds to grad_weight, which may be float32 where the others are half.
LmHeadGradient LmHeadLossBackward(const at::Tensor& normed, const at::Tensor& weight, const at::Tensor& targets, double scale,
                                  at::Tensor& grad_weight, const KernelLauncher* kernels = nullptr);

// What lies between the products: of logits as OwnHeadLossAndGradient takes them, which are changed.
LossAndGradient LossAndGradientOf(at::Tensor logits, const at::Tensor& like, const at::Tensor& targets, int64_t words,
                                  double scale, const KernelLauncher* kernels);

// ---- of a part of the vocabulary: rows [first, first + weight.size(0)); targets are of the whole ----

// Into `made` [2, rows], in the type of the rows' terms: the logarithm of the sum of exponentials of each row's logits, and the
// target's logit, 0 where another part has it.
void LmHeadRows(const at::Tensor& normed, const at::Tensor& weight, const at::Tensor& targets, int64_t first, at::Tensor made);
struct RowsOfAll {
  at::Tensor logsumexp;  // [rows] over the whole vocabulary
  at::Tensor loss;       // the sum over the rows, as LmHeadLossForward's
};
// `parts` [parts, 2, rows].
RowsOfAll CombineRows(const at::Tensor& parts);
// The gradient that LmHeadLossBackward makes: of `normed` the part's term of the gradient, of the weights the gradient itself.
at::Tensor LmHeadPartBackward(const at::Tensor& normed, const at::Tensor& weight, const at::Tensor& targets, int64_t first,
                              const at::Tensor& logsumexp, double scale, at::Tensor& grad_weight);

}  // namespace motley::engine
