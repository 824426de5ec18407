#include "worker/engine/operators/projection.h"

#include "worker/engine/base/torch_pch.h"
#include "worker/engine/operators/half.h"
#include "worker/engine/operators/own_bias_gradient.h"
#include "worker/engine/operators/own_kernels.h"

namespace motley::engine {

namespace {

// The stored matrix as [in, out], a view.
at::Tensor InOut(const at::Tensor& weight, WeightLayout layout) {
  switch (layout) {
    case WeightLayout::kInOut:
      return weight;
    case WeightLayout::kOutIn:
      return weight.t();
  }
  TORCH_CHECK(false, "no weight layout ", static_cast<int>(layout));
}

void AddSums(const at::Tensor& rows, at::Tensor& sums, const KernelLauncher* kernels) {
  if (sums.scalar_type() == at::kFloat && TakenByKernels(kernels, {rows}, rows.size(-1))) {
    return OwnAddSums(*kernels, rows, sums);
  }
  sums.add_(rows.sum(at::IntArrayRef{0}, /*keepdim=*/false, sums.scalar_type()));
}

}  // namespace

at::Tensor ProjectionForward(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, WeightLayout layout) {
  const at::Tensor in_out = InOut(weight, layout);
  return bias.defined() ? at::addmm(bias, input, in_out) : at::mm(input, in_out);
}

at::Tensor ProjectionBackwardInput(const at::Tensor& grad_output, const at::Tensor& weight, WeightLayout layout) {
  return at::mm(grad_output, InOut(weight, layout).t());
}

void ProjectionBackwardWeight(const at::Tensor& grad_output, const at::Tensor& input, WeightLayout layout,
                              at::Tensor& grad_weight, at::Tensor& grad_bias, const KernelLauncher* kernels) {
  switch (layout) {
    case WeightLayout::kInOut:
      AddProduct(grad_weight, input.t(), grad_output);
      break;
    case WeightLayout::kOutIn:
      AddProduct(grad_weight, grad_output.t(), input);
      break;
  }
  if (grad_bias.defined()) AddSums(grad_output, grad_bias, kernels);
}

}  // namespace motley::engine
