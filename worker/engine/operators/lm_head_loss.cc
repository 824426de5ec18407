#include "worker/engine/operators/lm_head_loss.h"

#include "worker/engine/base/torch_pch.h"
#include "worker/engine/operators/half.h"

namespace motley::engine {
namespace {

// exp(logits - row maximum), in place of the logits: one chunk of [rows, vocab] is all that ever exists.
struct Exponentials {
  at::Tensor values;   // [rows, vocab]
  at::Tensor maximum;  // [rows, 1]
  at::Tensor target;   // [rows, 1] the target's logit
};

Exponentials Exponentiate(const at::Tensor& normed, const at::Tensor& weight, const at::Tensor& targets) {
  at::Tensor logits = Widened(at::mm(normed, weight.t()));
  at::Tensor target = logits.gather(1, targets.unsqueeze(1));
  at::Tensor maximum = logits.amax(1, /*keepdim=*/true);
  logits.sub_(maximum).exp_();
  return {logits, maximum, target};
}

}  // namespace

at::Tensor LmHeadLossForward(const at::Tensor& normed, const at::Tensor& weight, const at::Tensor& targets) {
  const Exponentials e = Exponentiate(normed, weight, targets);
  return e.values.sum(1, /*keepdim=*/true).log_().add_(e.maximum).sub_(e.target).sum(at::kDouble);
}

at::Tensor LmHeadLossBackward(const at::Tensor& normed, const at::Tensor& weight, const at::Tensor& targets, double scale,
                              at::Tensor& grad_weight) {
  at::Tensor grad_logits = Exponentiate(normed, weight, targets).values;
  grad_logits.div_(grad_logits.sum(1, /*keepdim=*/true));
  const at::Tensor index = targets.unsqueeze(1);
  grad_logits.scatter_add_(1, index, at::full_like(index, -1, grad_logits.options()));
  grad_logits = grad_logits.mul_(scale).to(normed.scalar_type());
  AddProduct(grad_weight, grad_logits.t(), normed);
  return at::mm(grad_logits, weight);
}

}  // namespace motley::engine
