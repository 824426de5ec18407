#include "worker/engine/operators/lm_head_loss.h"

#include <limits>
#include <utility>

#include "common/model/operators.h"
#include "worker/engine/base/torch_pch.h"
#include "worker/engine/operators/half.h"
#include "worker/engine/operators/own_kernels.h"
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

// [rows, LogitColumns(words)] in the tensors' type, or float32 where half types' product can be. Behind the words stand logits of
// -inf: neither maxima nor sums of exponentials see them, and what goes over the elements has them all side by side.
at::Tensor Logits(const at::Tensor& normed, const at::Tensor& weight) {
  const int64_t words = weight.size(0), columns = LogitColumns(words);
  const at::ScalarType type = MultipliesIntoFloat32(normed) ? at::kFloat : normed.scalar_type();
  at::Tensor room = at::empty({normed.size(0), columns}, normed.options().dtype(type));
  ForEachPartOfWords(words, [&](int64_t first, int64_t count) {
    at::Tensor of_words = room.narrow(1, first, count);
    Multiply(of_words, normed, weight.narrow(0, first, count).t());
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

// In the logits' own place, half logits' in a float32 copy: one chunk of such numbers is all that ever exists.
at::Tensor LogSoftmax(const at::Tensor& logits) {
  at::Tensor wide = Widened(logits);
  return at::_log_softmax_out(wide, wide, 1, /*half_to_float=*/false);
}

// The rows' cross entropy, summed.
at::Tensor LossOf(const at::Tensor& log_softmax, const at::Tensor& targets) {
  return log_softmax.gather(1, targets.unsqueeze(1)).neg_().sum(at::kDouble);
}

at::Tensor ExponentialsOf(const at::Tensor& logits, const at::Tensor& logsumexp) {
  return Widened(logits).sub_(logsumexp).exp_();
}

// In `like`'s type; a card multiplies and rounds in one pass. To be called as a statement of its own: `values` lives until its
// end.
at::Tensor ScaledTo(const at::Tensor& like, at::Tensor values, double scale) {
  if (!values.is_cuda() || values.scalar_type() == like.scalar_type()) return values.mul_(scale).to(like.scalar_type());
  at::Tensor scaled = at::empty(values.sizes(), like.options());
  return at::mul_out(scaled, values, at::scalar_tensor(scale, at::kDouble));
}

}  // namespace

at::Tensor LmHeadLossForward(const at::Tensor& normed, const at::Tensor& weight, const at::Tensor& targets,
                             const KernelLauncher* kernels) {
  const at::Tensor logits = Logits(normed, weight);
  if (TakenByKernels(kernels, {logits}, logits.size(1))) return OwnHeadLoss(*kernels, logits, normed, targets, weight.size(0));
  return LossOf(LogSoftmax(logits), targets);
}

LmHeadGradient LmHeadLossBackward(const at::Tensor& normed, const at::Tensor& weight, const at::Tensor& targets, double scale,
                                  at::Tensor& grad_weight, const KernelLauncher* kernels) {
  const LossAndGradient of_logits = LossAndGradientOf(Logits(normed, weight), normed, targets, weight.size(0), scale, kernels);
  return {BackwardOfProduct(of_logits.gradient, normed, weight, grad_weight), of_logits.loss};
}

LossAndGradient LossAndGradientOf(at::Tensor logits, const at::Tensor& like, const at::Tensor& targets, int64_t words,
                                  double scale, const KernelLauncher* kernels) {
  if (TakenByKernels(kernels, {logits}, logits.size(1))) {
    return OwnHeadLossAndGradient(*kernels, std::move(logits), like, targets, words, scale);
  }
  at::Tensor values = LogSoftmax(std::exchange(logits, at::Tensor()));
  const at::Tensor loss = LossOf(values, targets);
  values.exp_().scatter_add_(1, targets.unsqueeze(1), at::full({targets.size(0), 1}, -1, values.options()));
  return {loss, ScaledTo(like, std::move(values), scale)};
}

void LmHeadRows(const at::Tensor& normed, const at::Tensor& weight, const at::Tensor& targets, int64_t first, at::Tensor made) {
  const RowsOfPart rows = RowsInPart(targets, first, weight.size(0));
  const at::Tensor logits = Logits(normed, weight), index = rows.index.unsqueeze(1);
  const at::Tensor some = Widened(logits.gather(1, index)).squeeze(1);  // a copy: what follows may take the logits' place
  made.select(0, 0).copy_(some - LogSoftmax(logits).gather(1, index).squeeze(1));
  made.select(0, 1).copy_(some.masked_fill(rows.elsewhere, 0));
}

RowsOfAll CombineRows(const at::Tensor& parts) {
  const at::Tensor logsumexp = parts.select(1, 0).logsumexp(0);
  return {logsumexp, (logsumexp - parts.select(1, 1).sum(0)).sum(at::kDouble)};
}

at::Tensor LmHeadPartBackward(const at::Tensor& normed, const at::Tensor& weight, const at::Tensor& targets, int64_t first,
                              const at::Tensor& logsumexp, double scale, at::Tensor& grad_weight) {
  const RowsOfPart rows = RowsInPart(targets, first, weight.size(0));
  at::Tensor grad_logits = ExponentialsOf(Logits(normed, weight), logsumexp.unsqueeze(1));
  const at::Tensor ones = at::full_like(rows.index, -1, grad_logits.options()).masked_fill_(rows.elsewhere, 0);
  grad_logits.scatter_add_(1, rows.index.unsqueeze(1), ones.unsqueeze(1));
  grad_logits = ScaledTo(normed, std::move(grad_logits), scale);
  return BackwardOfProduct(grad_logits, normed, weight, grad_weight);
}

}  // namespace motley::engine
