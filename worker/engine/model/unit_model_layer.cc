// A layer: walks over the table of its operators, between what the caller hands in and what is kept.
#include <cmath>
#include <utility>

#include "common/model/layer_table.h"
#include "worker/engine/base/torch_pch.h"
#include "worker/engine/model/layer_frame.h"
#include "worker/engine/model/layer_walk.h"
#include "worker/engine/model/unit_model.h"
#include "worker/engine/model/unit_view.h"

namespace motley::engine {
namespace {

double AttentionScaleOf(const ModelShape& shape) {
  return shape.query_scalar == 0 ? 0 : 1 / std::sqrt(static_cast<double>(shape.query_scalar));
}

}  // namespace

const LayerTensors& UnitModel::LayerOf(const UnitArray& array) const {
  std::optional<LayerTensors>& tensors = array.views().layer;
  if (!tensors) {
    tensors = LayerView(*traits_, layout_[1], array.flat());
    if (!slice_.leads()) tensors->out_bias = tensors->down_bias = at::Tensor();
  }
  return *tensors;
}

LayerFrame UnitModel::FrameOf(const LayerKind& kind, int64_t samples, int64_t seq_len, const Documents* documents) const {
  return {.shape = shape_,
          .traits = *traits_,
          .rotary = TablesOf(kind, documents != nullptr ? documents->rotary : rotary_),
          .samples = samples,
          .seq_len = seq_len,
          .adds_carried = whole(),
          .borders = documents != nullptr ? documents->borders : nullptr,
          .attention = {.window = kind.window, .scale = AttentionScaleOf(shape_)},
          .kernels = kernels_};
}

std::string UnitModel::NameOfAttention(int64_t samples, const at::TensorOptions& where) const {
  const HeadLayout heads = FrameOf({}, samples, seq_len_, nullptr).heads();
  return engine::NameOfAttention(at::empty({samples, seq_len_, heads.width()}, where.dtype(ScalarTypeOf(dtype_))), heads);
}

ValueSet UnitModel::KeptFor(OpSet recomputed) const {
  return KeptValues().Without(MadeBy(whole() ? recomputed : WithoutSums(recomputed, *traits_), *traits_));
}

at::Tensor UnitModel::LayerForward(const UnitArray& params, const at::Tensor& input, Saved* saved, OpSet recomputed,
                                   const Documents* documents) {
  if (saved != nullptr) return LayerForward(UnitSegment::kWhole, params, input, *saved, KeptFor(recomputed), documents);
  Saved nothing;
  return LayerForward(UnitSegment::kWhole, params, input, nothing, ValueSet(), documents);
}

at::Tensor UnitModel::LayerForward(UnitSegment segment, const UnitArray& params, const at::Tensor& input, Saved& saved,
                                   ValueSet kept, const Documents* documents, FiniteMark* mark) {
  const bool second = segment == UnitSegment::kMlp;
  TORCH_CHECK(!second || saved.tensors.size() == kNumLayerValues, "the second segment of a layer whose first one did not run");
  LayerFrame frame = FrameOf(saved.kind, input.size(0), input.size(1), documents);
  frame.mark = mark;
  frame.weights = LayerOf(params);
  if (second) {
    frame.values = std::move(saved.tensors);
  } else {
    frame.Value(LayerValue::kInput) = AsRows(input);
  }
  WalkOf(saved.kind).Forward(frame, kept, segment);
  at::Tensor output = frame.Value(segment == UnitSegment::kAttention ? LayerValue::kResidual : LayerValue::kOutput);
  frame.Value(LayerValue::kOutput).reset();
  saved.tensors = std::move(frame.values);
  return output.view(input.sizes());
}

void UnitModel::LayerRecompute(const UnitArray& params, Saved& saved, OpSet recomputed, const Documents* documents) {
  TORCH_CHECK(saved.tensors.size() == kNumLayerValues, "recomputation of a layer whose forward kept nothing");
  const int64_t rows = saved.tensors[static_cast<size_t>(LayerValue::kInput)].size(0);
  LayerFrame frame = FrameOf(saved.kind, rows / seq_len_, seq_len_, documents);
  frame.weights = LayerOf(params);
  frame.values = std::move(saved.tensors);
  WalkOf(saved.kind).Recompute(frame, whole() ? recomputed : WithoutSums(recomputed, *traits_));
  frame.Value(LayerValue::kOutput).reset();  // All() runs the whole forward, as it is priced
  saved.tensors = std::move(frame.values);
}

LayerFrame UnitModel::BackwardFrame(const UnitArray& params, Saved& saved, const at::Tensor& grad_output, UnitSegment segment,
                                    const Documents* documents) const {
  TORCH_CHECK(saved.tensors.size() == kNumLayerValues, "backward of a layer whose forward kept nothing");
  LayerFrame frame = FrameOf(saved.kind, grad_output.size(0), grad_output.size(1), documents);
  frame.weights = LayerOf(params);
  frame.values = std::move(saved.tensors);
  if (segment == UnitSegment::kAttention) {
    TORCH_CHECK(saved.gradients.size() == kNumLayerValues, "backward of attention before that of the MLP");
    frame.gradients = std::move(saved.gradients);
    frame.Gradient(LayerValue::kResidual) = AsRows(grad_output);
  } else {
    frame.Gradient(LayerValue::kOutput) = AsRows(grad_output);
  }
  saved = {.kind = saved.kind};
  return frame;
}

at::Tensor UnitModel::LayerBackward(const UnitArray& params, Saved& saved, const at::Tensor& grad_output, const UnitArray& grads,
                                    UnitSegment segment, const Documents* documents, FiniteMark* mark) {
  LayerFrame frame = BackwardFrame(params, saved, grad_output, segment, documents);
  frame.mark = mark;
  frame.weight_gradients = LayerOf(grads);
  WalkOf(saved.kind).Backward(frame, segment);
  if (segment != UnitSegment::kMlp) return frame.Gradient(LayerValue::kInput).view(grad_output.sizes());
  const at::Tensor grad_between = frame.Gradient(LayerValue::kResidual);
  saved.tensors = std::move(frame.values);
  saved.gradients = std::move(frame.gradients);
  return grad_between.view(grad_output.sizes());
}

at::Tensor UnitModel::LayerBackwardInput(const UnitArray& params, Saved& saved, const at::Tensor& grad_output,
                                         UnitSegment segment, const Documents* documents, FiniteMark* mark) {
  LayerFrame frame = BackwardFrame(params, saved, grad_output, segment, documents);
  frame.mark = mark;
  WalkOf(saved.kind).BackwardInput(frame, segment);
  // What attention makes is waited with, too: its sum in place is that of the gradient which the weights need.
  const at::Tensor grad_input = segment == UnitSegment::kMlp ? frame.Gradient(LayerValue::kResidual)
                                                             : std::exchange(frame.Gradient(LayerValue::kInput), at::Tensor());
  saved.tensors = std::move(frame.values);
  saved.gradients = std::move(frame.gradients);
  return grad_input.view(grad_output.sizes());
}

void UnitModel::LayerBackwardWeight(Saved& saved, const UnitArray& grads, UnitSegment segment) {
  TORCH_CHECK(saved.gradients.size() == kNumLayerValues, "weights' gradients of a layer whose input's were not computed");
  LayerFrame frame = FrameOf(saved.kind, 0, 0, nullptr);
  frame.weight_gradients = LayerOf(grads);
  frame.values = std::move(saved.tensors);
  frame.gradients = std::move(saved.gradients);
  saved = {.kind = saved.kind};
  WalkOf(saved.kind).BackwardWeight(frame, segment);
  if (segment != UnitSegment::kMlp) return;
  saved.tensors = std::move(frame.values);
  saved.gradients = std::move(frame.gradients);
}

}  // namespace motley::engine
