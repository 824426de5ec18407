// One transformer layer:  x1 = x + out(attention(qkv(norm1(x)))),  y = x1 + down(activation(up(norm2(x1)))).
#include <utility>

#include "worker/engine/base/torch_pch.h"
#include "worker/engine/model/unit_model.h"
#include "worker/engine/model/unit_view.h"
#include "worker/engine/operators/activation.h"
#include "worker/engine/operators/attention.h"
#include "worker/engine/operators/norm.h"
#include "worker/engine/operators/projection.h"

namespace motley::engine {
namespace {

// What a layer keeps, in this order; common/model/operators.h prices exactly these.
enum SavedOfLayer {
  kInput,
  kMean1,
  kRstd1,
  kNormed1,
  kQkvHeads,
  kAttended,
  kLogsumexp,
  kResidual,
  kMean2,
  kRstd2,
  kNormed2,
  kUpOutput,
  kActivated,
  kNumSaved
};

at::Tensor AsRows(const at::Tensor& t) { return t.reshape({-1, t.size(-1)}); }

}  // namespace

at::Tensor UnitModel::LayerForward(const at::Tensor& params, const at::Tensor& input, Saved* saved) {
  const LayerTensors w = LayerView(*traits_, layout_[1], params);
  const WeightLayout layout = traits_->weights;
  const HeadLayout heads{shape_.num_heads, shape_.num_kv_heads, shape_.head_dim};
  const int64_t samples = input.size(0), seq_len = input.size(1);
  if (saved != nullptr) saved->tensors.assign(kNumSaved, at::Tensor());
  // Moves a tensor that nobody needs any more in this forward into what is kept, or drops it.
  const auto keep = [&](SavedOfLayer index, at::Tensor& t) {
    if (saved != nullptr) saved->tensors[index] = t;
    t.reset();
  };

  at::Tensor x = AsRows(input);
  NormStats stats;
  at::Tensor normed = NormForward(traits_->norm, x, w.norm1, w.norm1_bias, shape_.norm_eps, stats);
  keep(kMean1, stats.mean);
  keep(kRstd1, stats.rstd);
  at::Tensor qkv = ProjectionForward(normed, w.qkv, w.qkv_bias, layout).view({samples, seq_len, heads.width()});
  keep(kNormed1, normed);
  if (rotary_.cos.defined()) {
    at::Tensor rotated = HeadsView(qkv, heads, 0, heads.heads + heads.kv_heads);
    RotaryForward(rotary_, rotated);
  }
  AttentionOutput attention = AttentionForward(qkv, heads);
  keep(kQkvHeads, qkv);
  keep(kLogsumexp, attention.logsumexp);
  at::Tensor residual = ProjectionForward(AsRows(attention.output), w.out, w.out_bias, layout).add_(x);
  keep(kAttended, attention.output);
  keep(kInput, x);

  normed = NormForward(traits_->norm, residual, w.norm2, w.norm2_bias, shape_.norm_eps, stats);
  keep(kMean2, stats.mean);
  keep(kRstd2, stats.rstd);
  at::Tensor up = ProjectionForward(normed, w.up, w.up_bias, layout);
  keep(kNormed2, normed);
  at::Tensor activated = ActivationForward(traits_->activation, up);
  keep(kUpOutput, up);
  at::Tensor output = ProjectionForward(activated, w.down, w.down_bias, layout).add_(residual);
  keep(kActivated, activated);
  keep(kResidual, residual);
  return output.view(input.sizes());
}

at::Tensor UnitModel::LayerBackward(const at::Tensor& params, Saved& saved, const at::Tensor& grad_output, at::Tensor& grads) {
  TORCH_CHECK(saved.tensors.size() == kNumSaved, "backward of a layer whose forward kept nothing");
  const LayerTensors w = LayerView(*traits_, layout_[1], params);
  LayerTensors g = LayerView(*traits_, layout_[1], grads);
  const WeightLayout layout = traits_->weights;
  const HeadLayout heads{shape_.num_heads, shape_.num_kv_heads, shape_.head_dim};
  // Hands a kept tensor over: it is freed at the end of the statement that uses it last.
  const auto take = [&](SavedOfLayer index) -> at::Tensor { return std::exchange(saved.tensors[index], at::Tensor()); };

  const at::Tensor grad_rows = AsRows(grad_output);
  ProjectionBackwardWeight(grad_rows, take(kActivated), layout, g.down, g.down_bias);
  at::Tensor grad = ProjectionBackwardInput(grad_rows, w.down, layout);
  grad = ActivationBackward(traits_->activation, grad, take(kUpOutput));
  ProjectionBackwardWeight(grad, take(kNormed2), layout, g.up, g.up_bias);
  grad = ProjectionBackwardInput(grad, w.up, layout);
  grad = NormBackward(traits_->norm, grad, take(kResidual), w.norm2, w.norm2_bias, {take(kMean2), take(kRstd2)}, g.norm2,
                      g.norm2_bias);
  const at::Tensor grad_residual = grad.add_(grad_rows);

  const at::Tensor qkv = take(kQkvHeads);
  AttentionOutput attention{take(kAttended), take(kLogsumexp)};
  ProjectionBackwardWeight(grad_residual, AsRows(attention.output), layout, g.out, g.out_bias);
  grad = ProjectionBackwardInput(grad_residual, w.out, layout).view(attention.output.sizes());
  at::Tensor grad_qkv = AttentionBackward(grad, qkv, attention, heads);
  attention = {};
  if (rotary_.cos.defined()) {
    at::Tensor rotated = HeadsView(grad_qkv, heads, 0, heads.heads + heads.kv_heads);
    RotaryBackward(rotary_, rotated);
  }
  const at::Tensor grad_qkv_rows = AsRows(grad_qkv);
  ProjectionBackwardWeight(grad_qkv_rows, take(kNormed1), layout, g.qkv, g.qkv_bias);
  grad = ProjectionBackwardInput(grad_qkv_rows, w.qkv, layout);
  grad =
      NormBackward(traits_->norm, grad, take(kInput), w.norm1, w.norm1_bias, {take(kMean1), take(kRstd1)}, g.norm1, g.norm1_bias);
  saved.tensors.clear();
  return grad.add_(grad_residual).view(grad_output.sizes());
}

}  // namespace motley::engine
