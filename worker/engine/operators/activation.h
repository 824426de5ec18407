// The activations: GELU (tanh form), and gated by it or by SiLU: GeGLU and SwiGLU.
#pragma once

#include <ATen/core/Tensor.h>

#include "common/model/model_family.h"

namespace motley::engine {

class KernelLauncher;

at::Tensor GeluForward(const at::Tensor& input);
at::Tensor GeluBackward(const at::Tensor& grad_output, const at::Tensor& input);

// input [rows, 2 * width]: gate, then up. Returns silu(gate) * up, [rows, width]. `kernels`: the device's own; null: none.
at::Tensor SwiGluForward(const at::Tensor& input, const KernelLauncher* kernels = nullptr);
at::Tensor SwiGluBackward(const at::Tensor& grad_output, const at::Tensor& input, const KernelLauncher* kernels = nullptr);

// The same with GELU (tanh form) in the place of SiLU.
at::Tensor GeGluForward(const at::Tensor& input, const KernelLauncher* kernels = nullptr);
at::Tensor GeGluBackward(const at::Tensor& grad_output, const at::Tensor& input, const KernelLauncher* kernels = nullptr);

// Of any kind.
at::Tensor ActivationForward(ActivationKind kind, const at::Tensor& input, const KernelLauncher* kernels = nullptr);
at::Tensor ActivationBackward(ActivationKind kind, const at::Tensor& grad_output, const at::Tensor& input,
                              const KernelLauncher* kernels = nullptr);

}  // namespace motley::engine
