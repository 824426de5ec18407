// Norms by kernels of our own, as norm.h has them, of tensors that are taken. May throw c10::Error.
#pragma once

#include <ATen/core/Tensor.h>

#include "common/model/model_family.h"
#include "worker/engine/kernels/kernel_launcher.h"
#include "worker/engine/operators/norm.h"

namespace motley::engine {

// By the rule of own_kernels.h.
bool TakesNorm(const KernelLauncher* kernels, const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
               const at::Tensor& carried = {});
bool TakesNormBackward(const KernelLauncher* kernels, const at::Tensor& grad_output, const at::Tensor& input,
                       const at::Tensor& weight, const NormStats& stats, const at::Tensor& carried = {});

at::Tensor OwnNormForward(const KernelLauncher& kernels, NormKind kind, const at::Tensor& input, const at::Tensor& weight,
                          const at::Tensor& bias, double eps, NormStats& stats, const at::Tensor& carried = {});
NormGradients OwnNormBackward(const KernelLauncher& kernels, NormKind kind, const at::Tensor& grad_output,
                              const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, const NormStats& stats,
                              const at::Tensor& carried = {}, FiniteMark* mark = nullptr);

}  // namespace motley::engine
