// The head: final norm, then projection and cross entropy over chunks of rows (docs/inside/operators.md).
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

// What the head keeps, in this order: the whole its input alone. common/model/operators.h prices all but the last, a number for
// each token.
enum SavedOfHead { kHeadInput, kHeadMean, kHeadRstd, kHeadNormed, kHeadLogsumexp, kNumSavedOfHead };

// Calls body(first row, rows) for each chunk.
template <typename Body>
void ForEachChunk(int64_t rows, const Body& body, int64_t chunk = kHeadChunkTokens) {
  for (int64_t begin = 0; begin < rows; begin += chunk) body(begin, std::min(chunk, rows - begin));
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
  // The other rows become zeros.
  void KeepAlone(at::Tensor& all) const {
    if (!trained_.defined()) return;
    const at::Tensor others = at::ones({all.size(0)}, all.options().dtype(at::kBool)).index_fill_(0, trained_, false);
    all.masked_fill_(others.unsqueeze(1), 0);
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
                                  const at::Tensor& targets, const at::Tensor& trained) {
  const HeadTensors w = HeadOf(params, embedding_params);
  const at::Tensor x = input.reshape({-1, input.size(-1)}), labels = targets.reshape({-1});
  NormStats stats;
  const at::Tensor normed = NormForward(traits_->norm, x, w.norm, w.norm_bias, shape_.norm_eps, stats, kernels_);
  at::Tensor sum = at::zeros({}, x.options().dtype(at::kDouble));
  const TrainedRows some(x.size(0), trained);
  ForEachChunk(some.size(), [&](int64_t begin, int64_t rows) {
    sum.add_(LmHeadLossForward(some.In(normed, 0, begin, rows), w.projection, some.In(labels, 0, begin, rows), kernels_));
  });
  return sum;
}

void UnitModel::HeadKeep(const at::Tensor& input, Saved& saved) {
  saved.tensors.assign(kNumSavedOfHead, at::Tensor());
  saved.tensors[kHeadInput] = input.reshape({-1, input.size(-1)});
}

at::Tensor UnitModel::HeadLogits(const UnitArray& params, const UnitArray& embedding_params, const at::Tensor& input,
                                 const at::Tensor& targets, Keep keep, Saved& saved, const at::Tensor& trained) {
  const HeadTensors w = HeadOf(params, embedding_params);
  const at::Tensor x = input.reshape({-1, input.size(-1)}), labels = targets.reshape({-1});
  NormStats stats;
  const at::Tensor normed = NormForward(traits_->norm, x, w.norm, w.norm_bias, shape_.norm_eps, stats, kernels_);
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
  saved.tensors[kHeadNormed] =
      NormForward(traits_->norm, saved.tensors[kHeadInput], w.norm, w.norm_bias, shape_.norm_eps, stats, kernels_);
  saved.tensors[kHeadMean] = stats.mean;
  saved.tensors[kHeadRstd] = stats.rstd;
}

HeadGradient UnitModel::HeadBackward(const UnitArray& params, const UnitArray& embedding_params, Saved& saved,
                                     const at::Tensor& targets, double scale, const UnitArray& grads,
                                     const UnitArray& embedding_grads, const at::Tensor& trained, int64_t rows_at_once) {
  TORCH_CHECK(saved.tensors.size() == kNumSavedOfHead, "backward of a head whose forward kept nothing");
  const HeadTensors w = HeadOf(params, embedding_params);
  HeadTensors g = HeadOf(grads, embedding_grads);
  const at::Tensor labels = targets.reshape({-1});
  std::vector<at::Tensor> kept = std::exchange(saved.tensors, {});
  const at::Tensor input = kept[kHeadInput];
  const at::Tensor logsumexp = kept[kHeadLogsumexp];  // of a part: its forward has made loss and norm
  NormStats stats{kept[kHeadMean], kept[kHeadRstd]};
  at::Tensor normed = std::exchange(kept[kHeadNormed], at::Tensor());
  if (!logsumexp.defined()) normed = NormForward(traits_->norm, input, w.norm, w.norm_bias, shape_.norm_eps, stats, kernels_);
  const TrainedRows some(normed.size(0), trained);
  HeadGradient made;
  at::Tensor grad;  // of `normed`
  if (logsumexp.defined()) {
    grad = some.RoomLike(normed);
    ForEachChunk(some.size(), [&](int64_t begin, int64_t rows) {
      some.Write(LmHeadPartBackward(some.In(normed, 0, begin, rows), w.projection, some.In(labels, 0, begin, rows), first_token_,
                                    logsumexp.narrow(0, begin, rows), scale, g.projection),
                 0, begin, grad);
    });
  } else {
    // A chunk's rows are done with when their gradients are there, and give them their place.
    grad = normed;
    some.KeepAlone(grad);
    made.loss = at::zeros({}, normed.options().dtype(at::kDouble));
    const auto make = [&](int64_t begin, int64_t rows) {
      const LmHeadGradient of_chunk = LmHeadLossBackward(some.In(normed, 0, begin, rows), w.projection,
                                                         some.In(labels, 0, begin, rows), scale, g.projection, kernels_);
      made.loss.add_(of_chunk.loss);
      some.Write(of_chunk.normed, 0, begin, grad);
    };
    ForEachChunk(some.size(), make, rows_at_once);
  }
  const NormGradients of_norm = NormBackward(traits_->norm, grad, input, w.norm, w.norm_bias, stats, kernels_);
  g.norm.add_(of_norm.weight);
  if (of_norm.bias.defined()) g.norm_bias.add_(of_norm.bias);
  made.input = of_norm.input.view({targets.size(0), targets.size(1), -1});
  return made;
}

}  // namespace motley::engine
