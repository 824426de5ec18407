// A layer: walks over the table of its operators, between what the caller hands in and what is kept.
#include <utility>

#include "common/model/layer_table.h"
#include "worker/engine/base/torch_pch.h"
#include "worker/engine/model/layer_frame.h"
#include "worker/engine/model/layer_walk.h"
#include "worker/engine/model/unit_model.h"
#include "worker/engine/model/unit_view.h"

namespace motley::engine {

LayerFrame UnitModel::FrameOf(int64_t samples, int64_t seq_len) const {
  return {.shape = shape_, .traits = *traits_, .rotary = rotary_, .samples = samples, .seq_len = seq_len};
}

at::Tensor UnitModel::LayerForward(const at::Tensor& params, const at::Tensor& input, Saved* saved, OpSet recomputed) {
  LayerFrame frame = FrameOf(input.size(0), input.size(1));
  frame.weights = LayerView(*traits_, layout_[1], params);
  frame.Value(LayerValue::kInput) = AsRows(input);
  walk_.Forward(frame, saved != nullptr ? KeptValues().Without(MadeBy(recomputed)) : ValueSet());
  const at::Tensor output = std::exchange(frame.Value(LayerValue::kOutput), at::Tensor()).view(input.sizes());
  if (saved != nullptr) saved->tensors = std::move(frame.values);
  return output;
}

void UnitModel::LayerRecompute(const at::Tensor& params, Saved& saved, OpSet recomputed) {
  TORCH_CHECK(saved.tensors.size() == kNumLayerValues, "recomputation of a layer whose forward kept nothing");
  const int64_t rows = saved.tensors[static_cast<size_t>(LayerValue::kInput)].size(0);
  LayerFrame frame = FrameOf(rows / seq_len_, seq_len_);
  frame.weights = LayerView(*traits_, layout_[1], params);
  frame.values = std::move(saved.tensors);
  walk_.Recompute(frame, recomputed);
  frame.Value(LayerValue::kOutput).reset();  // All() runs the whole forward, as it is priced
  saved.tensors = std::move(frame.values);
}

LayerFrame UnitModel::BackwardFrame(const at::Tensor& params, Saved& saved, const at::Tensor& grad_output) const {
  TORCH_CHECK(saved.tensors.size() == kNumLayerValues, "backward of a layer whose forward kept nothing");
  LayerFrame frame = FrameOf(grad_output.size(0), grad_output.size(1));
  frame.weights = LayerView(*traits_, layout_[1], params);
  frame.values = std::move(saved.tensors);
  frame.Gradient(LayerValue::kOutput) = AsRows(grad_output);
  saved = {};
  return frame;
}

at::Tensor UnitModel::LayerBackward(const at::Tensor& params, Saved& saved, const at::Tensor& grad_output, at::Tensor& grads) {
  LayerFrame frame = BackwardFrame(params, saved, grad_output);
  frame.weight_gradients = LayerView(*traits_, layout_[1], grads);
  walk_.Backward(frame);
  return frame.Gradient(LayerValue::kInput).view(grad_output.sizes());
}

at::Tensor UnitModel::LayerBackwardInput(const at::Tensor& params, Saved& saved, const at::Tensor& grad_output) {
  LayerFrame frame = BackwardFrame(params, saved, grad_output);
  walk_.BackwardInput(frame);
  at::Tensor grad_input = std::exchange(frame.Gradient(LayerValue::kInput), at::Tensor());
  saved.tensors = std::move(frame.values);
  saved.gradients = std::move(frame.gradients);
  return grad_input.view(grad_output.sizes());
}

void UnitModel::LayerBackwardWeight(Saved& saved, at::Tensor& grads) {
  TORCH_CHECK(saved.gradients.size() == kNumLayerValues, "weights' gradients of a layer whose input's were not computed");
  LayerFrame frame = FrameOf(0, 0);
  frame.weight_gradients = LayerView(*traits_, layout_[1], grads);
  frame.values = std::move(saved.tensors);
  frame.gradients = std::move(saved.gradients);
  saved = {};
  walk_.BackwardWeight(frame);
}

}  // namespace motley::engine
