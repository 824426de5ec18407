#include "worker/engine/operators/lm_head_loss.h"

#include <limits>
#include <utility>

#include "common/model/operators.h"
#include "worker/engine/base/torch_pch.h"
#include "worker/engine/operators/half.h"
#include "worker/engine/operators/vocabulary_part.h"

namespace motley::engine {
namespace {

// Calls body(first word, words) for a multiple of 64 of them and for the rest: a card's products of bfloat16 whose sizes are no
// multiples of 8 (50257 words) run at an eighth of the others' rate, however long the rows of their memory are.
template <typename Body>
void ForEachPartOfWords(int64_t words, const Body& body) {
  const int64_t whole = words / kLogitColumns * kLogitColumns;
  if (whole > 0) body(0, whole);
  if (whole < words) body(whole, words - whole);
}

// [rows, LogitColumns(words)] in the tensors' type. Behind the words stand logits of -inf: neither maxima nor sums of
// exponentials see them, and what goes over the elements has them all side by side.
at::Tensor Logits(const at::Tensor& normed, const at::Tensor& weight) {
  const int64_t words = weight.size(0), columns = LogitColumns(words);
  at::Tensor room = at::empty({normed.size(0), columns}, normed.options());
  ForEachPartOfWords(words, [&](int64_t first, int64_t count) {
    at::Tensor of_words = room.narrow(1, first, count);
    at::mm_out(of_words, normed, weight.narrow(0, first, count).t());
  });
  if (columns > words) room.narrow(1, words, columns - words).fill_(-std::numeric_limits<double>::infinity());
  return room;
}

// The sum over the words. A card's is two products, the small one first: the other adds to it before it rounds.
at::Tensor BackwardOfNormed(const at::Tensor& grad_logits, const at::Tensor& weight) {
  const int64_t words = weight.size(0), whole = words / kLogitColumns * kLogitColumns;
  const auto product = [&](int64_t first, int64_t count) {
    return at::mm(grad_logits.narrow(1, first, count), weight.narrow(0, first, count));
  };
  if (!weight.is_cuda() || whole == 0 || whole == words) return product(0, words);
  return product(whole, words - whole).addmm_(grad_logits.narrow(1, 0, whole), weight.narrow(0, 0, whole));
}

// Both products of the gradients, from those of the logits in such a room.
at::Tensor BackwardOfProduct(const at::Tensor& grad_logits, const at::Tensor& normed, const at::Tensor& weight,
                             at::Tensor& grad_weight) {
  ForEachPartOfWords(weight.size(0), [&](int64_t first, int64_t count) {
    at::Tensor sum = grad_weight.narrow(0, first, count);
    AddProduct(sum, grad_logits.narrow(1, first, count).t(), normed);
  });
  return BackwardOfNormed(grad_logits, weight);
}

// exp(logits - row maximum): one chunk of them is all that ever exists, half logits in float32.
struct Exponentials {
  at::Tensor values;   // [rows, LogitColumns(words)]
  at::Tensor maximum;  // [rows, 1]
  at::Tensor target;   // [rows, 1] the target's logit
};

// The difference of half logits and float32 maxima is float32: on a card no pass widens them before (a host would, into a copy).
at::Tensor ExponentialsOf(const at::Tensor& logits, const at::Tensor& subtracted) {
  if (logits.is_cuda() && IsHalf(logits)) return at::sub(logits, subtracted).exp_();
  return Widened(logits).sub_(subtracted).exp_();
}

Exponentials Exponentiate(const at::Tensor& normed, const at::Tensor& weight, const at::Tensor& targets) {
  const at::Tensor logits = Logits(normed, weight);
  const at::Tensor target = Widened(logits.gather(1, targets.unsqueeze(1)));
  const at::Tensor maximum = Widened(logits.amax(1, /*keepdim=*/true));
  return {ExponentialsOf(logits, maximum), maximum, target};
}

// In `like`'s type; a card multiplies and rounds in one pass. To be called as a statement of its own: `values` lives until its
// end.
at::Tensor ScaledTo(const at::Tensor& like, at::Tensor values, const at::Tensor& scale) {
  if (!values.is_cuda() || values.scalar_type() == like.scalar_type()) return values.mul_(scale).to(like.scalar_type());
  at::Tensor scaled = at::empty(values.sizes(), like.options());
  return at::mul_out(scaled, values, scale);
}

}  // namespace

at::Tensor LmHeadLossForward(const at::Tensor& normed, const at::Tensor& weight, const at::Tensor& targets) {
  const Exponentials e = Exponentiate(normed, weight, targets);
  return e.values.sum(1, /*keepdim=*/true).log_().add_(e.maximum).sub_(e.target).sum(at::kDouble);
}

// (e / sum - 1 at the target) * scale, as (e - sum at the target) * (scale / sum): one pass less over the elements.
at::Tensor LmHeadLossBackward(const at::Tensor& normed, const at::Tensor& weight, const at::Tensor& targets, double scale,
                              at::Tensor& grad_weight) {
  at::Tensor values = Exponentiate(normed, weight, targets).values;
  const at::Tensor sum = values.sum(1, /*keepdim=*/true);
  values.scatter_add_(1, targets.unsqueeze(1), sum.neg());
  const at::Tensor grad_logits = ScaledTo(normed, std::move(values), at::full_like(sum, scale).div_(sum));
  return BackwardOfProduct(grad_logits, normed, weight, grad_weight);
}

void LmHeadRows(const at::Tensor& normed, const at::Tensor& weight, const at::Tensor& targets, int64_t first, at::Tensor made) {
  const RowsOfPart rows = RowsInPart(targets, first, weight.size(0));
  const at::Tensor logits = Logits(normed, weight);
  made.select(0, 2).copy_(logits.gather(1, rows.index.unsqueeze(1)).squeeze(1).masked_fill_(rows.elsewhere, 0));
  const at::Tensor maximum = Widened(logits.amax(1, /*keepdim=*/true));
  made.select(0, 0).copy_(maximum.squeeze(1));
  made.select(0, 1).copy_(ExponentialsOf(logits, maximum).sum(1));
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
  at::Tensor grad_logits = ExponentialsOf(Logits(normed, weight), logsumexp.unsqueeze(1));
  const at::Tensor ones = at::full_like(rows.index, -1, grad_logits.options()).masked_fill_(rows.elsewhere, 0);
  grad_logits.scatter_add_(1, rows.index.unsqueeze(1), ones.unsqueeze(1));
  grad_logits = ScaledTo(normed, std::move(grad_logits), at::full({}, scale, logsumexp.options()));
  return BackwardOfProduct(grad_logits, normed, weight, grad_weight);
}

}  // namespace motley::engine
