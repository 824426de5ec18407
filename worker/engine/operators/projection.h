// y = x W + b, where W is stored in either layout.
#pragma once

#include <ATen/core/Tensor.h>

#include "common/model/model_family.h"

namespace motley::engine {

class KernelLauncher;

// input [rows, in]; bias [out] or undefined. Returns [rows, out].
at::Tensor ProjectionForward(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, WeightLayout layout);

// dx = dy W^T.
at::Tensor ProjectionBackwardInput(const at::Tensor& grad_output, const at::Tensor& weight, WeightLayout layout);
// Adds x^T dy to grad_weight and the column sums to grad_bias (if defined), which may be float32 where the others are half.
// `kernels`: the device's own; null: none.
void ProjectionBackwardWeight(const at::Tensor& grad_output, const at::Tensor& input, WeightLayout layout,
                              at::Tensor& grad_weight, at::Tensor& grad_bias, const KernelLauncher* kernels = nullptr);

}  // namespace motley::engine
