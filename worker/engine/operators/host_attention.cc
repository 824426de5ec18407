// The host's kernel. It has no windows: of one, the first positions see all before them, and those behind run block by block over
// the keys that their block sees, with a mask of that block.
#include <torch/version.h>

#include <algorithm>
#include <limits>

#include "worker/engine/base/torch_pch.h"
#include "worker/engine/operators/attention_groups.h"
#include "worker/engine/operators/half.h"

namespace motley::engine {
namespace {

// The kernel of libtorch 2.7 knows no groups and reads beyond keys and values where they are fewer; that of 2.11 knows them.
constexpr bool kHostKnowsGroups = TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 11;

AttentionHeads ForHost(const AttentionHeads& heads) { return kHostKnowsGroups ? heads : Expanded(heads); }

// Queries at once: a mask has as many rows, and sees so many keys more than the window.
constexpr int64_t kBlockQueries = 256;

// Queries [first, first + queries) and the keys that one of them sees, which end with the last query.
struct Block {
  int64_t first = 0, queries = 0, first_key = 0;
  at::Tensor mask;  // undefined: of all that come before
  int64_t keys() const { return first + queries - first_key; }
  at::Tensor Queries(const at::Tensor& all) const { return all.narrow(2, first, queries); }
  at::Tensor Keys(const at::Tensor& all) const { return all.narrow(2, first_key, keys()); }
  AttentionHeads Of(const AttentionHeads& all) const { return {Queries(all.q), Keys(all.k), Keys(all.v)}; }
  bool causal() const { return !mask.defined(); }
  std::optional<at::Tensor> MaskForKernel() const { return causal() ? std::nullopt : std::optional<at::Tensor>(mask); }
};

// Query i of a block sees its keys i to i + window - 1.
at::Tensor MaskOf(int64_t window, const at::Tensor& heads) {
  const at::Tensor seen = at::ones({kBlockQueries, kBlockQueries + window - 1}, heads.options().dtype(at::kBool)).triu_(0);
  seen.tril_(window - 1);
  return at::zeros(seen.sizes(), heads.options()).masked_fill_(seen.logical_not(), -std::numeric_limits<double>::infinity());
}

template <typename Body>
void ForEachBlock(int64_t window, const at::Tensor& heads, const Body& body) {
  const int64_t seq_len = heads.size(2);
  body(Block{0, window, 0, at::Tensor()});
  const at::Tensor mask = MaskOf(window, heads);
  for (int64_t first = window; first < seq_len; first += kBlockQueries) {
    const int64_t queries = std::min(kBlockQueries, seq_len - first);
    body(Block{first, queries, first - window + 1, mask.narrow(0, 0, queries).narrow(1, 0, queries + window - 1)});
  }
}

AttentionResult ForwardOfBlock(const AttentionHeads& heads, const Block& block, const AttentionForm& form) {
  const AttentionHeads part = block.Of(heads);
  auto [output, logsumexp] = at::_scaled_dot_product_flash_attention_for_cpu(part.q, part.k, part.v, kNoDropout, block.causal(),
                                                                             block.MaskForKernel(), ScaleForKernel(form));
  return {output, logsumexp};
}

AttentionResult ForwardInWindow(const AttentionHeads& heads, const AttentionForm& form) {
  const at::Tensor output = RoomOf(heads.q, heads.q.size(3), heads.q.options());
  at::Tensor logsumexp;
  ForEachBlock(form.window, heads.q, [&](const Block& block) {
    const AttentionResult made = ForwardOfBlock(heads, block, form);
    if (!logsumexp.defined()) logsumexp = RoomOf(heads.q, 1, made.logsumexp.options()).squeeze(3);
    block.Queries(output).copy_(made.output);
    block.Queries(logsumexp).copy_(made.logsumexp);
  });
  return {output, logsumexp};
}

// A key's gradient is a sum over blocks: in float32 of half types.
AttentionHeads BackwardInWindow(const at::Tensor& grad_output, const AttentionHeads& heads, const AttentionResult& saved,
                                const AttentionForm& form) {
  const at::TensorOptions sums = heads.k.options().dtype(IsHalf(heads.k) ? at::kFloat : heads.k.scalar_type());
  const AttentionHeads grads = {RoomOf(heads.q, heads.q.size(3), heads.q.options()),
                                RoomOf(heads.k, heads.k.size(3), sums).zero_(), RoomOf(heads.v, heads.v.size(3), sums).zero_()};
  ForEachBlock(form.window, heads.q, [&](const Block& block) {
    const AttentionHeads part = block.Of(heads);
    auto [q, k, v] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
        block.Queries(grad_output), part.q, part.k, part.v, block.Queries(saved.output), block.Queries(saved.logsumexp),
        kNoDropout, block.causal(), block.MaskForKernel(), ScaleForKernel(form));
    block.Queries(grads.q).copy_(q);
    block.Keys(grads.k).add_(k);
    block.Keys(grads.v).add_(v);
  });
  const at::ScalarType type = heads.k.scalar_type();
  return {grads.q, grads.k.to(type), grads.v.to(type)};
}

}  // namespace

bool HostKnowsGroups() { return kHostKnowsGroups; }

AttentionResult HostAttentionForward(const AttentionHeads& heads, const AttentionForm& form) {
  const AttentionHeads all = ForHost(heads);
  if (form.WindowOver(heads.q.size(2)) != 0) return ForwardInWindow(all, form);
  auto [output, logsumexp] = at::_scaled_dot_product_flash_attention_for_cpu(all.q, all.k, all.v, kNoDropout, kCausal,
                                                                             /*attn_mask=*/std::nullopt, ScaleForKernel(form));
  return {output, logsumexp};
}

AttentionHeads HostAttentionBackward(const at::Tensor& grad_output, const AttentionHeads& heads, const AttentionResult& saved,
                                     const AttentionForm& form) {
  const AttentionHeads all = ForHost(heads);
  const int64_t group = kHostKnowsGroups ? 1 : GroupOf(heads);
  if (form.WindowOver(heads.q.size(2)) != 0) return Summed(BackwardInWindow(grad_output, all, saved, form), group);
  auto [q, k, v] = at::_scaled_dot_product_flash_attention_for_cpu_backward(grad_output, all.q, all.k, all.v, saved.output,
                                                                            saved.logsumexp, kNoDropout, kCausal,
                                                                            /*attn_mask=*/std::nullopt, ScaleForKernel(form));
  return Summed({q, k, v}, group);
}

}  // namespace motley::engine
