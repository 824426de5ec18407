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

// The rows that are trained, chunk by chunk: of all rows views, of some copies, one chunk's at a time.
class TrainedRows {
 public:
  // `trained` undefined: all of `rows`.
  TrainedRows(int64_t rows, const at::Tensor& trained) : rows_(trained.defined() ? trained.numel() : rows), trained_(trained) {}

  int64_t size() const { return rows_; }
  // Of a tensor that has all rows in `dim`.
  at::Tensor In(const at::Tensor& all, int64_t dim, int64_t begin, int64_t rows) const {
    return trained_.defined() ? all.index_select(dim, trained_.narrow(0, begin, rows)) : all.narrow(dim, begin, rows);
  }
  void Write(const at::Tensor& made, int64_t dim, int64_t begin, at::Tensor& all) const {
    if (trained_.defined()) {
      all.index_copy_(dim, trained_.narrow(0, begin, made.size(dim)), made);
    } else {
      all.narrow(dim, begin, made.size(dim)).copy_(made);
    }
  }
  // Where Write leaves rows untouched.
  at::Tensor RoomLike(const at::Tensor& all) const { return trained_.defined() ? at::zeros_like(all) : at::empty_like(all); }

 private:
  const int64_t rows_;
  const at::Tensor trained_;
};

}  // namespace

HeadTensors UnitModel::HeadOf(const UnitArray& array, const UnitArray& embedding) const {
  std::optional<HeadTensors>& own = array.views().head;
  if (!own) own = HeadView(shape_, layout_.back(), array.flat());
  HeadTensors tensors = *own;
  if (shape_.tie_embeddings) tensors.projection = EmbeddingOf(embedding).tokens;
  return tensors;
}

at::Tensor UnitModel::HeadForward(const UnitArray& params, const UnitArray& embedding_params, const at::Tensor& input,
                                  const at::Tensor& targets, Saved* saved, const at::Tensor& trained) {
  const HeadTensors w = HeadOf(params, embedding_params);
  const at::Tensor x = input.reshape({-1, input.size(-1)}), labels = targets.reshape({-1});
  NormStats stats;
  const at::Tensor normed = NormForward(traits_->norm, x, w.norm, w.norm_bias, shape_.norm_eps, stats);
  at::Tensor sum = at::zeros({}, x.options().dtype(at::kDouble));
  const TrainedRows some(x.size(0), trained);
  ForEachChunk(some.size(), [&](int64_t begin, int64_t rows) {
    sum.add_(LmHeadLossForward(some.In(normed, 0, begin, rows), w.projection, some.In(labels, 0, begin, rows)));
  });
  if (saved != nullptr) saved->tensors = {x, stats.mean, stats.rstd, normed, at::Tensor()};
  return sum;
}

at::Tensor UnitModel::HeadLogits(const UnitArray& params, const UnitArray& embedding_params, const at::Tensor& input,
                                 const at::Tensor& targets, Keep keep, Saved& saved, const at::Tensor& trained) {
  const HeadTensors w = HeadOf(params, embedding_params);
  const at::Tensor x = input.reshape({-1, input.size(-1)}), labels = targets.reshape({-1});
  NormStats stats;
  const at::Tensor normed = NormForward(traits_->norm, x, w.norm, w.norm_bias, shape_.norm_eps, stats);
  const auto numbers = x.options().dtype(IsHalf(x) ? at::kFloat : x.scalar_type());
  at::Tensor rows = trained.defined() ? at::zeros({kNumbersOfALogitsRow, x.size(0)}, numbers)
                                      : at::empty({kNumbersOfALogitsRow, x.size(0)}, numbers);
  const TrainedRows some(x.size(0), trained);
  ForEachChunk(some.size(), [&](int64_t begin, int64_t count) {
    const at::Tensor made = trained.defined() ? at::empty({kNumbersOfALogitsRow, count}, numbers) : rows.narrow(1, begin, count);
    LmHeadRows(some.In(normed, 0, begin, count), w.projection, some.In(labels, 0, begin, count), first_token_, made);
    if (trained.defined()) some.Write(made, 1, begin, rows);
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

at::Tensor UnitModel::HeadLoss(const at::Tensor& rows, Keep keep, Saved& saved, const at::Tensor& trained) {
  const at::Tensor parts = rows.view({-1, kNumbersOfALogitsRow, rows.size(-1)});
  const RowsOfAll all = CombineRows(trained.defined() ? parts.index_select(2, trained) : parts);
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
                                   const UnitArray& embedding_grads, const at::Tensor& trained) {
  TORCH_CHECK(saved.tensors.size() == kNumSavedOfHead, "backward of a head whose forward kept nothing");
  const HeadTensors w = HeadOf(params, embedding_params);
  HeadTensors g = HeadOf(grads, embedding_grads);
  const at::Tensor labels = targets.reshape({-1});
  const at::Tensor normed = std::exchange(saved.tensors[kHeadNormed], at::Tensor());
  const TrainedRows some(normed.size(0), trained);
  at::Tensor grad = some.RoomLike(normed);
  const at::Tensor logsumexp = std::exchange(saved.tensors[kHeadLogsumexp], at::Tensor());
  ForEachChunk(some.size(), [&](int64_t begin, int64_t rows) {
    const at::Tensor of_chunk = some.In(normed, 0, begin, rows), label = some.In(labels, 0, begin, rows);
    some.Write(logsumexp.defined() ? LmHeadPartBackward(of_chunk, w.projection, label, first_token_,
                                                        logsumexp.narrow(0, begin, rows), scale, g.projection)
                                   : LmHeadLossBackward(of_chunk, w.projection, label, scale, g.projection),
               0, begin, grad);
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
