// The activations: GELU (tanh form), and gated by it or by SiLU: GeGLU and SwiGLU.
#pragma once

#include <ATen/core/Tensor.h>

#include "common/model/model_family.h"

namespace motley::engine {

at::Tensor GeluForward(const at::Tensor& input);
at::Tensor GeluBackward(const at::Tensor& grad_output, const at::Tensor& input);

// input [rows, 2 * width]: gate, then up. Returns silu(gate) * up, [rows, width].
at::Tensor SwiGluForward(const at::Tensor& input);
at::Tensor SwiGluBackward(const at::Tensor& grad_output, const at::Tensor& input);

// The same with GELU (tanh form) in the place of SiLU.
at::Tensor GeGluForward(const at::Tensor& input);
at::Tensor GeGluBackward(const at::Tensor& grad_output, const at::Tensor& input);

// Of any kind.
at::Tensor ActivationForward(ActivationKind kind, const at::Tensor& input);
at::Tensor ActivationBackward(ActivationKind kind, const at::Tensor& grad_output, const at::Tensor& input);

}  // namespace motley::engine
