// LayerNorm and RMSNorm over the last dimension. Input [rows, hidden]; the per-row statistics are what the backward needs
// beside the input. In the tensors' own dtype; of half tensors statistics and sums are float32.
#pragma once

#include <ATen/core/Tensor.h>

#include "common/model/model_family.h"

namespace motley::engine {

class FiniteMark;
class KernelLauncher;

struct NormStats {
  at::Tensor mean;  // [rows, 1]; undefined for RMSNorm
  at::Tensor rstd;  // [rows, 1]
};

// The sums for the weights come from the same pass over the input; they are made, not added to what is there.
struct NormGradients {
  at::Tensor input;
  // In the type of the statistics, by PyTorch's operators for cards in that of the weights; RMSNorm has no bias.
  at::Tensor weight, bias;
};

at::Tensor LayerNormForward(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, double eps,
                            NormStats& stats);
NormGradients LayerNormBackward(const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight,
                                const at::Tensor& bias, const NormStats& stats);

at::Tensor RmsNormForward(const at::Tensor& input, const at::Tensor& weight, double eps, NormStats& stats);
NormGradients RmsNormBackward(const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight,
                              const NormStats& stats);

// Of either kind; RMSNorm leaves the bias alone. `kernels`: the device's own; null: none. `carried`, where it is defined: what
// goes past the operator before the norm, which is added to its input, in place; backward the gradient that goes past the norm,
// which is added to the input's. Both have the bits of an addition of its own. `mark`: kernels mark it where the input's gradient
// is not finite.
at::Tensor NormForward(NormKind kind, const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, double eps,
                       NormStats& stats, const KernelLauncher* kernels = nullptr, const at::Tensor& carried = {});
NormGradients NormBackward(NormKind kind, const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight,
                           const at::Tensor& bias, const NormStats& stats, const KernelLauncher* kernels = nullptr,
                           const at::Tensor& carried = {}, FiniteMark* mark = nullptr);

}  // namespace motley::engine
