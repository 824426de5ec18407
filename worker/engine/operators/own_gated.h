// SwiGLU and GeGLU by kernels of our own, as activation.h has it, of tensors that are taken (own_kernels.h). May throw
// c10::Error.
#pragma once

#include <ATen/core/Tensor.h>

#include "worker/engine/kernels/kernel_launcher.h"

namespace motley::engine {

at::Tensor OwnSwiGluForward(const KernelLauncher& kernels, const at::Tensor& input);
at::Tensor OwnSwiGluBackward(const KernelLauncher& kernels, const at::Tensor& grad_output, const at::Tensor& input);
at::Tensor OwnGeGluForward(const KernelLauncher& kernels, const at::Tensor& input);
at::Tensor OwnGeGluBackward(const KernelLauncher& kernels, const at::Tensor& grad_output, const at::Tensor& input);

}  // namespace motley::engine
