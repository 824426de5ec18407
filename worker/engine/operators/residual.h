// What is carried past a layer's products. May throw c10::Error.
#pragma once

#include <ATen/core/Tensor.h>

#include "worker/engine/operators/finite_check.h"

namespace motley::engine {

class KernelLauncher;

// Adds it to what the product made, in place. `kernels`: the device's own, where it has some: they say in passing whether the sum
// is finite, if `mark` asks for it.
void AddCarried(const at::Tensor& sum, const at::Tensor& carried, const KernelLauncher* kernels, FiniteMark* mark);

}  // namespace motley::engine
