#include "worker/engine/operators/norm.h"

#include "worker/engine/base/torch_pch.h"
#include "worker/engine/operators/half.h"

namespace motley::engine {
namespace {

// ATen's kernel for the CPU keeps statistics in the weights' type. (CUDA's keeps them in float32, and takes no weights of another
// type than the input's.)
at::Tensor ForStatistics(const at::Tensor& weight) { return weight.is_cpu() ? Widened(weight) : weight; }

}  // namespace

at::Tensor LayerNormForward(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, double eps,
                            NormStats& stats) {
  auto [output, mean, rstd] = at::native_layer_norm(input, {input.size(-1)}, ForStatistics(weight), ForStatistics(bias), eps);
  stats = {mean, rstd};
  return output;
}

at::Tensor LayerNormBackward(const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight,
                             const at::Tensor& bias, const NormStats& stats, at::Tensor& grad_weight, at::Tensor& grad_bias) {
  auto [grad_input, weight_part, bias_part] =
      at::native_layer_norm_backward(grad_output, input, {input.size(-1)}, stats.mean, stats.rstd, ForStatistics(weight),
                                     ForStatistics(bias), {true, true, true});
  grad_weight.add_(weight_part);
  grad_bias.add_(bias_part);
  return grad_input;
}

// y = w * n with n = x * rstd, rstd = (mean(x^2) + eps)^(-1/2).
at::Tensor RmsNormForward(const at::Tensor& input, const at::Tensor& weight, double eps, NormStats& stats) {
  stats.mean = at::Tensor();
  const at::Tensor x = Widened(input);
  stats.rstd = at::square(x).mean(-1, /*keepdim=*/true).add_(eps).rsqrt_();
  return at::mul(x, stats.rstd).mul_(weight).to(input.scalar_type());
}

// With g = w * dy:  dx = rstd * (g - n * mean(g * n)),  dw = sum over rows of dy * n.
at::Tensor RmsNormBackward(const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight,
                           const NormStats& stats, at::Tensor& grad_weight) {
  const at::Tensor grad = Widened(grad_output);
  at::Tensor normed = at::mul(Widened(input), stats.rstd);
  grad_weight.add_(at::mul(grad, normed).sum(0));
  at::Tensor grad_input = at::mul(grad, weight);
  const at::Tensor projection = at::mul(grad_input, normed).mean(-1, /*keepdim=*/true);
  return grad_input.sub_(normed.mul_(projection)).mul_(stats.rstd).to(input.scalar_type());
}

at::Tensor NormForward(NormKind kind, const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, double eps,
                       NormStats& stats) {
  switch (kind) {
    case NormKind::kLayerNorm:
      return LayerNormForward(input, weight, bias, eps, stats);
    case NormKind::kRmsNorm:
      return RmsNormForward(input, weight, eps, stats);
  }
  TORCH_CHECK(false, "no norm of kind ", static_cast<int>(kind));
}

at::Tensor NormBackward(NormKind kind, const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight,
                        const at::Tensor& bias, const NormStats& stats, at::Tensor& grad_weight, at::Tensor& grad_bias) {
  switch (kind) {
    case NormKind::kLayerNorm:
      return LayerNormBackward(grad_output, input, weight, bias, stats, grad_weight, grad_bias);
    case NormKind::kRmsNorm:
      return RmsNormBackward(grad_output, input, weight, stats, grad_weight);
  }
  TORCH_CHECK(false, "no norm of kind ", static_cast<int>(kind));
}

}  // namespace motley::engine
