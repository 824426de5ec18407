#include "worker/engine/operators/attention.h"

#include <tuple>

#include "worker/engine/base/torch_pch.h"

namespace motley::engine {
namespace {

struct Heads {
  at::Tensor q, k, v;  // [samples, heads, seq_len, head_dim], views
};

Heads Split(const at::Tensor& qkv, const HeadLayout& layout) {
  return {HeadsView(qkv, layout, 0, layout.heads).transpose(1, 2),
          HeadsView(qkv, layout, layout.heads, layout.kv_heads).transpose(1, 2),
          HeadsView(qkv, layout, layout.heads + layout.kv_heads, layout.kv_heads).transpose(1, 2)};
}

}  // namespace

at::Tensor HeadsView(const at::Tensor& qkv, const HeadLayout& layout, int64_t first, int64_t count) {
  return qkv.narrow(-1, first * layout.head_dim, count * layout.head_dim).unflatten(-1, {count, layout.head_dim});
}

AttentionOutput AttentionForward(const at::Tensor& qkv, const HeadLayout& layout) {
  const Heads heads = Split(qkv, layout);
  auto [output, logsumexp] =
      at::_scaled_dot_product_flash_attention_for_cpu(heads.q, heads.k, heads.v, /*dropout_p=*/0.0, /*is_causal=*/true);
  return {output.transpose(1, 2).reshape({qkv.size(0), qkv.size(1), layout.heads * layout.head_dim}), logsumexp};
}

at::Tensor AttentionBackward(const at::Tensor& grad_output, const at::Tensor& qkv, const AttentionOutput& saved,
                             const HeadLayout& layout) {
  const Heads heads = Split(qkv, layout);
  const auto per_head = [&](const at::Tensor& t) { return t.unflatten(-1, {layout.heads, layout.head_dim}).transpose(1, 2); };
  at::Tensor grad = at::empty_like(qkv, at::MemoryFormat::Contiguous);
  auto [grad_q, grad_k, grad_v] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      per_head(grad_output), heads.q, heads.k, heads.v, per_head(saved.output), saved.logsumexp, /*dropout_p=*/0.0,
      /*is_causal=*/true);
  Heads target = Split(grad, layout);
  target.q.copy_(grad_q);
  target.k.copy_(grad_k);
  target.v.copy_(grad_v);
  return grad;
}

}  // namespace motley::engine
