#include "worker/engine/operators/projection.h"

#include "worker/engine/base/torch_pch.h"

namespace motley::engine {

at::Tensor ProjectionForward(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, WeightLayout layout) {
  const at::Tensor in_out = layout == WeightLayout::kInOut ? weight : weight.t();
  return bias.defined() ? at::addmm(bias, input, in_out) : at::mm(input, in_out);
}

at::Tensor ProjectionBackwardInput(const at::Tensor& grad_output, const at::Tensor& weight, WeightLayout layout) {
  return at::mm(grad_output, layout == WeightLayout::kInOut ? weight.t() : weight);
}

void ProjectionBackwardWeight(const at::Tensor& grad_output, const at::Tensor& input, WeightLayout layout,
                              at::Tensor& grad_weight, at::Tensor& grad_bias) {
  if (layout == WeightLayout::kInOut) {
    grad_weight.addmm_(input.t(), grad_output);
  } else {
    grad_weight.addmm_(grad_output.t(), input);
  }
  if (grad_bias.defined()) grad_bias.add_(grad_output.sum(0));
}

}  // namespace motley::engine
