#include "worker/engine/operators/attention.h"

#include <array>
#include <utility>

#include "worker/engine/base/torch_pch.h"
#include "worker/engine/operators/attention_kernels.h"
#include "worker/engine/operators/cudnn_attention.h"
#include "worker/engine/operators/own_rotary.h"

namespace motley::engine {
namespace {

AttentionHeads Split(const at::Tensor& qkv, const HeadLayout& layout) {
  return {HeadsView(qkv, layout, 0, layout.heads).transpose(1, 2),
          HeadsView(qkv, layout, layout.heads, layout.kv_heads).transpose(1, 2),
          HeadsView(qkv, layout, layout.heads + layout.kv_heads, layout.kv_heads).transpose(1, 2)};
}

// As qkv lies. Takes the gradients: they are gone before anything else needs room.
at::Tensor SideBySide(AttentionHeads grads, const at::Tensor& qkv, const HeadLayout& layout) {
  at::Tensor grad = at::empty_like(qkv, at::MemoryFormat::Contiguous);
  at::Tensor all_heads = HeadsView(grad, layout, 0, layout.heads + 2 * layout.kv_heads);
  const std::array parts = {grads.q.transpose(1, 2), grads.k.transpose(1, 2), grads.v.transpose(1, 2)};
  at::cat_out(all_heads, at::TensorList(parts), 2);  // one kernel on a card, where copies would be three
  return grad;
}

}  // namespace

at::Tensor HeadsView(const at::Tensor& qkv, const HeadLayout& layout, int64_t first, int64_t count) {
  return qkv.narrow(-1, first * layout.head_dim, count * layout.head_dim).unflatten(-1, {count, layout.head_dim});
}

AttentionOutput AttentionForward(const at::Tensor& qkv, const HeadLayout& layout, const Borders* borders,
                                 const AttentionForm& form) {
  const AttentionHeads heads = Split(qkv, layout);
  const AttentionKernel& kernel = KernelFor(heads);
  const AttentionResult result = AreSamples(borders) ? kernel.forward(heads, form) : kernel.forward_apart(heads, *borders, form);
  return {result.output.transpose(1, 2).reshape({qkv.size(0), qkv.size(1), layout.heads * layout.head_dim}), result.logsumexp};
}

at::Tensor AttentionBackward(const at::Tensor& grad_output, const at::Tensor& qkv, const AttentionOutput& saved,
                             const HeadLayout& layout, const Borders* borders, const AttentionForm& form,
                             const TurnedBy& turned) {
  const AttentionHeads heads = Split(qkv, layout);
  const auto per_head = [&](const at::Tensor& t) { return t.unflatten(-1, {layout.heads, layout.head_dim}).transpose(1, 2); };
  const AttentionKernel& kernel = KernelFor(heads);
  const AttentionResult made = {per_head(saved.output), saved.logsumexp};
  AttentionHeads grads = AreSamples(borders) ? kernel.backward(per_head(grad_output), heads, made, form)
                                             : kernel.backward_apart(per_head(grad_output), heads, made, *borders, form);
  const bool is_turned = turned.tables != nullptr && turned.tables->any();
  if (is_turned && ArePackedByKernels(turned.kernels, grads, *turned.tables)) {
    return OwnPackHeads(*turned.kernels, grads, *turned.tables);
  }
  at::Tensor grad = SideBySide(std::move(grads), qkv, layout);
  if (is_turned) RotaryBackward(*turned.tables, grad, layout.heads + layout.kv_heads, turned.kernels);
  return grad;
}

std::string NameOfAttention(const at::Tensor& qkv, const HeadLayout& layout) {
  const AttentionHeads heads = Split(qkv, layout);
  const AttentionKernel& kernel = KernelFor(heads);
  return &kernel == &CudnnAttention() && CudnnRefused(heads) ? FlashAttention().name : kernel.name;
}

}  // namespace motley::engine
