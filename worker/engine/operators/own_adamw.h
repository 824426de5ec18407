// A step of AdamW over a range by one kernel of our own, as model/optimizer.h has it. May throw c10::Error.
#pragma once

#include <ATen/core/Tensor.h>

#include "worker/engine/kernels/kernel_launcher.h"

namespace motley::engine {

// Of a step, in float64; the kernel computes in float32.
struct AdamWFactors {
  double clip, decay, beta1, beta2, step, root2, eps;  // as kernels::AdamWArguments
};
struct AdamWRange {
  at::Tensor gradient, parameter, exp_avg, exp_avg_sq;
  at::Tensor cast;  // becomes the parameter; undefined: nothing does
  bool zeroes_gradient = false;
};
// Whether the device has kernels, and they take it: float32, side by side, wherever it begins; the cast in a type of theirs.
bool AdamWTakenByKernels(const KernelLauncher* kernels, const AdamWRange& range);
void OwnAdamW(const KernelLauncher& kernels, const AdamWFactors& factors, const AdamWRange& range);

}  // namespace motley::engine
