// LayerNorm and RMSNorm over the last dimension. Input [rows, hidden]; the per-row statistics are what the backward needs
// beside the input. In the tensors' own dtype; of half tensors statistics and sums are float32, and so may the gradients of
// weights be.
#pragma once

#include <ATen/core/Tensor.h>

#include "common/model/model_family.h"

namespace motley::engine {

struct NormStats {
  at::Tensor mean;  // [rows, 1]; undefined for RMSNorm
  at::Tensor rstd;  // [rows, 1]
};

at::Tensor LayerNormForward(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, double eps,
                            NormStats& stats);
// Returns the gradient of the input, adds to grad_weight and grad_bias.
at::Tensor LayerNormBackward(const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight,
                             const at::Tensor& bias, const NormStats& stats, at::Tensor& grad_weight, at::Tensor& grad_bias);

at::Tensor RmsNormForward(const at::Tensor& input, const at::Tensor& weight, double eps, NormStats& stats);
at::Tensor RmsNormBackward(const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight,
                           const NormStats& stats, at::Tensor& grad_weight);

// Of either kind; RMSNorm has no bias, and leaves both biases alone.
at::Tensor NormForward(NormKind kind, const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, double eps,
                       NormStats& stats);
at::Tensor NormBackward(NormKind kind, const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight,
                        const at::Tensor& bias, const NormStats& stats, at::Tensor& grad_weight, at::Tensor& grad_bias);

}  // namespace motley::engine
