#include "worker/engine/operators/lm_head_loss.h"

#include <limits>

#include "common/model/operators.h"
#include "worker/engine/base/torch_pch.h"
#include "worker/engine/operators/half.h"
#include "worker/engine/operators/vocabulary_part.h"

namespace motley::engine {
namespace {

// [rows, LogitColumns(words)], half logits in float32. Behind the words stand logits of -inf: neither maxima nor sums of
// exponentials see them, and what goes over the elements has them all side by side.
at::Tensor Logits(const at::Tensor& normed, const at::Tensor& weight) {
  const int64_t words = weight.size(0), columns = LogitColumns(words);
  const at::Tensor room = at::empty({normed.size(0), columns}, normed.options());
  at::Tensor of_words = room.narrow(1, 0, words);
  at::mm_out(of_words, normed, weight.t());
  if (columns > words) room.narrow(1, words, columns - words).fill_(-std::numeric_limits<double>::infinity());
  return Widened(room);
}

// Both products of the gradients, from those of the logits in such a room.
at::Tensor BackwardOfProduct(const at::Tensor& grad_logits, const at::Tensor& normed, const at::Tensor& weight,
                             at::Tensor& grad_weight) {
  const at::Tensor of_words = grad_logits.narrow(1, 0, weight.size(0));
  AddProduct(grad_weight, of_words.t(), normed);
  return at::mm(of_words, weight);
}

// exp(logits - row maximum), in place of the logits: one chunk of them is all that ever exists.
struct Exponentials {
  at::Tensor values;   // [rows, LogitColumns(words)]
  at::Tensor maximum;  // [rows, 1]
  at::Tensor target;   // [rows, 1] the target's logit
};

Exponentials Exponentiate(const at::Tensor& normed, const at::Tensor& weight, const at::Tensor& targets) {
  at::Tensor logits = Logits(normed, weight);
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
  return BackwardOfProduct(grad_logits, normed, weight, grad_weight);
}

void LmHeadRows(const at::Tensor& normed, const at::Tensor& weight, const at::Tensor& targets, int64_t first, at::Tensor made) {
  const RowsOfPart rows = RowsInPart(targets, first, weight.size(0));
  at::Tensor logits = Logits(normed, weight);
  made.select(0, 2).copy_(logits.gather(1, rows.index.unsqueeze(1)).squeeze(1).masked_fill_(rows.elsewhere, 0));
  const at::Tensor maximum = logits.amax(1, /*keepdim=*/true);
  made.select(0, 0).copy_(maximum.squeeze(1));
  made.select(0, 1).copy_(logits.sub_(maximum).exp_().sum(1));
}

RowsOfAll CombineRows(const at::Tensor& parts) {
  const at::Tensor maximum = parts.select(1, 0).amax(0);
  at::Tensor sum = at::zeros_like(maximum), target = at::zeros_like(maximum);
  for (int64_t i = 0; i < parts.size(0); ++i) {
    const at::Tensor part = parts.select(0, i);
    sum.add_(part.select(0, 0).sub(maximum).exp_().mul_(part.select(0, 1)));
    target.add_(part.select(0, 2));
  }
  const at::Tensor logsumexp = sum.log_().add_(maximum);
  return {logsumexp, target.neg_().add_(logsumexp).sum(at::kDouble)};
}

at::Tensor LmHeadPartBackward(const at::Tensor& normed, const at::Tensor& weight, const at::Tensor& targets, int64_t first,
                              const at::Tensor& logsumexp, double scale, at::Tensor& grad_weight) {
  const RowsOfPart rows = RowsInPart(targets, first, weight.size(0));
  at::Tensor grad_logits = Logits(normed, weight).sub_(logsumexp.unsqueeze(1)).exp_();
  const at::Tensor ones = at::full_like(rows.index, -1, grad_logits.options()).masked_fill_(rows.elsewhere, 0);
  grad_logits.scatter_add_(1, rows.index.unsqueeze(1), ones.unsqueeze(1));
  grad_logits = grad_logits.mul_(scale).to(normed.scalar_type());
  return BackwardOfProduct(grad_logits, normed, weight, grad_weight);
}

}  // namespace motley::engine
