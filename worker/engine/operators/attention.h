// Causal scaled dot-product attention, heads grouped over fewer key and value heads. The flash kernel keeps no square.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "worker/engine/operators/attention_form.h"
#include "worker/engine/operators/borders.h"
#include "worker/engine/operators/rotary.h"

namespace motley::engine {

// Where the heads lie in the fused projection [samples, seq_len, (heads + 2 kv_heads) * head_dim]: q, then k, then v.
struct HeadLayout {
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  int64_t width() const { return (heads + 2 * kv_heads) * head_dim; }
};

struct AttentionOutput {
  at::Tensor output;     // [samples, seq_len, heads * head_dim], contiguous
  at::Tensor logsumexp;  // a number for each sample, head and position, as its kernel has them
};

// What turned queries and keys before attention read them. Their gradients are turned back where all are put side by side, in the
// same pass where the device has kernels of its own.
struct TurnedBy {
  const RotaryTables* tables = nullptr;     // null, or none in them: nothing did
  const KernelLauncher* kernels = nullptr;  // null: none
};

// The heads [first, first + count) of the fused projection as [samples, seq_len, count, head_dim], a view.
at::Tensor HeadsView(const at::Tensor& qkv, const HeadLayout& layout, int64_t first, int64_t count);

// Inside each document of the borders, or of each sample where there are none (null). What another document holds changes no bit.
AttentionOutput AttentionForward(const at::Tensor& qkv, const HeadLayout& layout, const Borders* borders = nullptr,
                                 const AttentionForm& form = {});
// Gradient of the fused projection as it was before it was turned, contiguous.
at::Tensor AttentionBackward(const at::Tensor& grad_output, const at::Tensor& qkv, const AttentionOutput& saved,
                             const HeadLayout& layout, const Borders* borders = nullptr, const AttentionForm& form = {},
                             const TurnedBy& turned = {});

// The kernel's name that does such projections, as far as this process knows: "cudnn", "flash", ...
std::string NameOfAttention(const at::Tensor& qkv, const HeadLayout& layout);

}  // namespace motley::engine
