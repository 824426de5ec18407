// Operators by kernels of our own (docs/inside/kernels.md), and the one place that says when they take what PyTorch's operators
// took. May throw c10::Error.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <initializer_list>

#include "worker/engine/kernels/kernel_launcher.h"

namespace motley::engine {

// Whether the device has kernels, and they take tensors of rows of so many columns: of one type that they are made for, without
// gaps, rows of a multiple of 8 elements, beginning at 16 bytes, something in them, and not more than one launch counts.
bool TakenByKernels(const KernelLauncher* kernels, std::initializer_list<at::Tensor> tensors, int64_t columns);

// As activation.h has them, of tensors that are taken.
at::Tensor OwnSwiGluForward(const KernelLauncher& kernels, const at::Tensor& input);
at::Tensor OwnSwiGluBackward(const KernelLauncher& kernels, const at::Tensor& grad_output, const at::Tensor& input);

}  // namespace motley::engine
