#include "worker/engine/operators/attention_groups.h"

#include "worker/engine/base/torch_pch.h"

namespace motley::engine {

int64_t GroupOf(const AttentionHeads& heads) { return heads.q.size(1) / heads.k.size(1); }

AttentionHeads Expanded(const AttentionHeads& heads) {
  const int64_t group = GroupOf(heads);
  if (group == 1) return heads;
  return {heads.q, heads.k.repeat_interleave(group, 1), heads.v.repeat_interleave(group, 1)};
}

AttentionHeads Summed(AttentionHeads grads, int64_t group) {
  if (group == 1) return grads;
  for (at::Tensor* grad : {&grads.k, &grads.v}) *grad = grad->unflatten(1, {grad->size(1) / group, group}).sum(2);
  return grads;
}

at::Tensor RoomOf(const at::Tensor& heads, int64_t columns, const at::TensorOptions& options) {
  return at::empty({heads.size(0), heads.size(2), heads.size(1), columns}, options).transpose(1, 2);
}

}  // namespace motley::engine
