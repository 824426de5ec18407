// Sums over rows by a kernel of our own, in one order always. May throw c10::Error.
#pragma once

#include <ATen/core/Tensor.h>

#include "worker/engine/kernels/kernel_launcher.h"

namespace motley::engine {

// Adds the sums of rows [rows, columns], which are taken (own_kernels.h), to `sums`: [columns], float32.
void OwnAddSums(const KernelLauncher& kernels, const at::Tensor& rows, at::Tensor& sums);

}  // namespace motley::engine
