// RMSNorm by ATen's fused operators: one kernel forward and two backward, where norm.h's own has eight and twelve. libtorch 2.11
// has them, with a backward on cards alone. Sums are float32 where the tensors are half.
#pragma once

#include <ATen/core/Tensor.h>

namespace motley::engine {

// Whether they can run on the input's device.
bool HasFusedRmsNorm(const at::Tensor& input);

// input [rows, hidden]; weight of its type.
struct FusedRmsNorm {
  at::Tensor output;
  at::Tensor rstd;  // [rows, 1]
};
FusedRmsNorm FusedRmsNormForward(const at::Tensor& input, const at::Tensor& weight, double eps);

struct FusedRmsNormGradients {
  at::Tensor input, weight;  // in their types
};
FusedRmsNormGradients FusedRmsNormBackward(const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight,
                                           const at::Tensor& rstd);

}  // namespace motley::engine
