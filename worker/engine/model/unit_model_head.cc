// The head: final norm, then projection and cross entropy over chunks of rows.
#include <algorithm>
#include <utility>

#include "common/model/operators.h"
#include "worker/engine/base/torch_pch.h"
#include "worker/engine/model/unit_model.h"
#include "worker/engine/model/unit_view.h"
#include "worker/engine/operators/half.h"
#include "worker/engine/operators/lm_head_loss.h"
#include "worker/engine/operators/norm.h"

namespace motley::engine {
namespace {

// What the head keeps, in this order; common/model/operators.h prices all but the last, a number for each token that only a part
// of the vocabulary needs.
enum SavedOfHead { kHeadInput, kHeadMean, kHeadRstd, kHeadNormed, kHeadLogsumexp, kNumSavedOfHead };

// Calls body(first row, rows) for each chunk.
template <typename Body>
void ForEachChunk(int64_t rows, const Body& body) {
  for (int64_t begin = 0; begin < rows; begin += kHeadChunkTokens) body(begin, std::min(kHeadChunkTokens, rows - begin));
}

}  // namespace

HeadTensors UnitModel::HeadOf(const UnitArray& array, const UnitArray& embedding) const {
  std::optional<HeadTensors>& own = array.views().head;
  if (!own) own = HeadView(shape_, layout_.back(), array.flat());
  HeadTensors tensors = *own;
  if (shape_.tie_embeddings) tensors.projection = EmbeddingOf(embedding).tokens;
  return tensors;
}

at::Tensor UnitModel::HeadForward(const UnitArray& params, const UnitArray& embedding_params, const at::Tensor& input,
                                  const at::Tensor& targets, Saved* saved) {
  const HeadTensors w = HeadOf(params, embedding_params);
  const at::Tensor x = input.reshape({-1, input.size(-1)}), labels = targets.reshape({-1});
  NormStats stats;
  const at::Tensor normed = NormForward(traits_->norm, x, w.norm, w.norm_bias, shape_.norm_eps, stats);
  at::Tensor sum = at::zeros({}, x.options().dtype(at::kDouble));
  ForEachChunk(x.size(0), [&](int64_t begin, int64_t rows) {
    sum.add_(LmHeadLossForward(normed.narrow(0, begin, rows), w.projection, labels.narrow(0, begin, rows)));
  });
  if (saved != nullptr) saved->tensors = {x, stats.mean, stats.rstd, normed, at::Tensor()};
  return sum;
}

at::Tensor UnitModel::HeadLogits(const UnitArray& params, const UnitArray& embedding_params, const at::Tensor& input,
                                 const at::Tensor& targets, Keep keep, Saved& saved) {
  const HeadTensors w = HeadOf(params, embedding_params);
  const at::Tensor x = input.reshape({-1, input.size(-1)}), labels = targets.reshape({-1});
  NormStats stats;
  const at::Tensor normed = NormForward(traits_->norm, x, w.norm, w.norm_bias, shape_.norm_eps, stats);
  const at::Tensor rows =
      at::empty({kNumbersOfALogitsRow, x.size(0)}, x.options().dtype(IsHalf(x) ? at::kFloat : x.scalar_type()));
  ForEachChunk(x.size(0), [&](int64_t begin, int64_t count) {
    LmHeadRows(normed.narrow(0, begin, count), w.projection, labels.narrow(0, begin, count), first_token_,
               rows.narrow(1, begin, count));
  });
  saved = {};
  switch (keep) {
    case Keep::kNothing:
      break;
    case Keep::kBoundary:
      saved.tensors = {x, at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor()};
      break;
    case Keep::kAll:
      saved.tensors = {x, stats.mean, stats.rstd, normed, at::Tensor()};
      break;
  }
  return rows;
}

at::Tensor UnitModel::HeadLoss(const at::Tensor& rows, Keep keep, Saved& saved) {
  const RowsOfAll all = CombineRows(rows.view({-1, kNumbersOfALogitsRow, rows.size(-1)}));
  if (keep != Keep::kNothing) saved.tensors.at(kHeadLogsumexp) = all.logsumexp;
  return all.loss;
}

void UnitModel::HeadRecompute(const UnitArray& params, const UnitArray& embedding_params, Saved& saved) {
  TORCH_CHECK(saved.tensors.size() == kNumSavedOfHead, "recomputation of a head whose forward kept nothing");
  const HeadTensors w = HeadOf(params, embedding_params);
  NormStats stats;
  saved.tensors[kHeadNormed] = NormForward(traits_->norm, saved.tensors[kHeadInput], w.norm, w.norm_bias, shape_.norm_eps, stats);
  saved.tensors[kHeadMean] = stats.mean;
  saved.tensors[kHeadRstd] = stats.rstd;
}

at::Tensor UnitModel::HeadBackward(const UnitArray& params, const UnitArray& embedding_params, Saved& saved,
                                   const at::Tensor& targets, double scale, const UnitArray& grads,
                                   const UnitArray& embedding_grads) {
  TORCH_CHECK(saved.tensors.size() == kNumSavedOfHead, "backward of a head whose forward kept nothing");
  const HeadTensors w = HeadOf(params, embedding_params);
  HeadTensors g = HeadOf(grads, embedding_grads);
  const at::Tensor labels = targets.reshape({-1});
  const at::Tensor normed = std::exchange(saved.tensors[kHeadNormed], at::Tensor());
  at::Tensor grad = at::empty_like(normed);
  const at::Tensor logsumexp = std::exchange(saved.tensors[kHeadLogsumexp], at::Tensor());
  ForEachChunk(normed.size(0), [&](int64_t begin, int64_t rows) {
    const at::Tensor of_chunk = normed.narrow(0, begin, rows), label = labels.narrow(0, begin, rows);
    grad.narrow(0, begin, rows)
        .copy_(logsumexp.defined() ? LmHeadPartBackward(of_chunk, w.projection, label, first_token_,
                                                        logsumexp.narrow(0, begin, rows), scale, g.projection)
                                   : LmHeadLossBackward(of_chunk, w.projection, label, scale, g.projection));
  });
  const at::Tensor input = std::exchange(saved.tensors[kHeadInput], at::Tensor());
  const NormStats stats{saved.tensors[kHeadMean], saved.tensors[kHeadRstd]};
  saved.tensors.clear();
  const NormGradients made = NormBackward(traits_->norm, grad, input, w.norm, w.norm_bias, stats);
  g.norm.add_(made.weight);
  if (made.bias.defined()) g.norm_bias.add_(made.bias);
  return made.input.view({targets.size(0), targets.size(1), -1});
}

}  // namespace motley::engine
