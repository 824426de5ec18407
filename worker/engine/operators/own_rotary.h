// Rotary positions by kernels of our own, as rotary.h has them, and the gradients of heads side by side. May throw c10::Error.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "worker/engine/kernels/kernel_launcher.h"
#include "worker/engine/operators/attention_kernels.h"
#include "worker/engine/operators/rotary.h"

namespace motley::engine {

// Of rows and tables that are taken (own_kernels.h), columns by half a head.
void OwnRotary(const KernelLauncher& kernels, const RotaryTables& tables, double sign, at::Tensor& rows, int64_t heads);

// Whether the device has kernels, and they take these gradients: see TakenByKernels; heads may lie as they like.
bool ArePackedByKernels(const KernelLauncher* kernels, const AttentionHeads& grads, const RotaryTables& tables);
// Gradients of queries, keys and values, [samples, heads, seq_len, head_dim], side by side as [samples, seq_len, columns]; those
// of queries and keys turned back.
at::Tensor OwnPackHeads(const KernelLauncher& kernels, const AttentionHeads& grads, const RotaryTables& tables);

}  // namespace motley::engine
