// What the kernels of attention share: heads that share keys and values where a kernel knows no groups, and arguments of ATen's.
#pragma once

#include <ATen/core/Tensor.h>

#include <cmath>
#include <cstdint>
#include <optional>

#include "worker/engine/operators/attention_form.h"
#include "worker/engine/operators/attention_kernels.h"

namespace motley::engine {

inline constexpr double kNoDropout = 0.0;
inline constexpr bool kCausal = true;

int64_t GroupOf(const AttentionHeads& heads);
// Keys and values once for each head of q.
AttentionHeads Expanded(const AttentionHeads& heads);
// The other way: gradients summed over each group.
AttentionHeads Summed(AttentionHeads grads, int64_t group);

// A place for each position of all heads, in memory [samples, seq_len, heads, columns]; as the kernels' tensors.
at::Tensor RoomOf(const at::Tensor& heads, int64_t columns, const at::TensorOptions& options);

// As ATen's kernels take it; their own where nothing is said.
inline std::optional<double> ScaleForKernel(const AttentionForm& form) {
  return form.scale == 0 ? std::nullopt : std::optional<double>(form.scale);
}

// The kernel of the host: of half and other types.
AttentionResult HostAttentionForward(const AttentionHeads& heads, const AttentionForm& form);
AttentionHeads HostAttentionBackward(const at::Tensor& grad_output, const AttentionHeads& heads, const AttentionResult& saved,
                                     const AttentionForm& form);

}  // namespace motley::engine
