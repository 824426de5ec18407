#include "worker/engine/operators/norm.h"

#include "worker/engine/base/torch_pch.h"
#include "worker/engine/operators/fused_rms_norm.h"
#include "worker/engine/operators/half.h"
#include "worker/engine/operators/own_norm.h"

namespace motley::engine {
namespace {

// ATen's kernel for the CPU keeps statistics in the weights' type. (CUDA's keeps them in float32, and takes no weights of another
// type than the input's.)
at::Tensor ForStatistics(const at::Tensor& weight) { return weight.is_cpu() ? Widened(weight) : weight; }

// y = w * n with n = x * rstd, rstd = (mean(x^2) + eps)^(-1/2).
at::Tensor RmsNormOfParts(const at::Tensor& input, const at::Tensor& weight, double eps, NormStats& stats) {
  stats.mean = at::Tensor();
  const at::Tensor x = Widened(input);
  stats.rstd = at::square(x).mean(-1, /*keepdim=*/true).add_(eps).rsqrt_();
  return at::mul(x, stats.rstd).mul_(weight).to(input.scalar_type());
}

// With g = w * dy:  dx = rstd * (g - n * mean(g * n)),  dw = sum over rows of dy * n.
NormGradients RmsNormOfPartsBackward(const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight,
                                     const NormStats& stats) {
  const at::Tensor grad = Widened(grad_output);
  at::Tensor normed = at::mul(Widened(input), stats.rstd);
  const at::Tensor grad_weight = at::mul(grad, normed).sum(0);
  at::Tensor grad_input = at::mul(grad, weight);
  const at::Tensor projection = at::mul(grad_input, normed).mean(-1, /*keepdim=*/true);
  return {grad_input.sub_(normed.mul_(projection)).mul_(stats.rstd).to(input.scalar_type()), grad_weight, at::Tensor()};
}

// What such a norm multiplies by, of a stored weight: in float32 of half types, which have no 1 + w of their own.
at::Tensor PlusOne(const at::Tensor& weight) { return Widened(weight).add(1); }

}  // namespace

at::Tensor LayerNormForward(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, double eps,
                            NormStats& stats) {
  auto [output, mean, rstd] = at::native_layer_norm(input, {input.size(-1)}, ForStatistics(weight), ForStatistics(bias), eps);
  stats = {mean, rstd};
  return output;
}

NormGradients LayerNormBackward(const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight,
                                const at::Tensor& bias, const NormStats& stats) {
  auto [grad_input, grad_weight, grad_bias] =
      at::native_layer_norm_backward(grad_output, input, {input.size(-1)}, stats.mean, stats.rstd, ForStatistics(weight),
                                     ForStatistics(bias), {true, true, true});
  return {grad_input, grad_weight, grad_bias};
}

at::Tensor RmsNormForward(const at::Tensor& input, const at::Tensor& weight, double eps, NormStats& stats) {
  stats.mean = at::Tensor();
  if (HasFusedRmsNorm(input)) {
    FusedRmsNorm made = FusedRmsNormForward(input, weight, eps);
    stats.rstd = made.rstd;
    return made.output;
  }
  return RmsNormOfParts(input, weight, eps, stats);
}

NormGradients RmsNormBackward(const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight,
                              const NormStats& stats) {
  if (HasFusedRmsNorm(input)) {
    FusedRmsNormGradients made = FusedRmsNormBackward(grad_output, input, weight, stats.rstd);
    return {made.input, made.weight, at::Tensor()};
  }
  return RmsNormOfPartsBackward(grad_output, input, weight, stats);
}

namespace {

at::Tensor ForwardByPyTorch(NormKind kind, const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, double eps,
                            NormStats& stats) {
  switch (kind) {
    case NormKind::kLayerNorm:
      return LayerNormForward(input, weight, bias, eps, stats);
    case NormKind::kRmsNorm:
      return RmsNormForward(input, weight, eps, stats);
    case NormKind::kRmsNormPlusOne:
      return IsHalf(input) ? RmsNormOfParts(input, PlusOne(weight), eps, stats)
                           : RmsNormForward(input, PlusOne(weight), eps, stats);
  }
  TORCH_CHECK(false, "no norm of kind ", static_cast<int>(kind));
}

NormGradients BackwardByPyTorch(NormKind kind, const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight,
                                const at::Tensor& bias, const NormStats& stats) {
  switch (kind) {
    case NormKind::kLayerNorm:
      return LayerNormBackward(grad_output, input, weight, bias, stats);
    case NormKind::kRmsNorm:
      return RmsNormBackward(grad_output, input, weight, stats);
    case NormKind::kRmsNormPlusOne:
      return IsHalf(input) ? RmsNormOfPartsBackward(grad_output, input, PlusOne(weight), stats)
                           : RmsNormBackward(grad_output, input, PlusOne(weight), stats);
  }
  TORCH_CHECK(false, "no norm of kind ", static_cast<int>(kind));
}

}  // namespace

at::Tensor NormForward(NormKind kind, const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, double eps,
                       NormStats& stats, const KernelLauncher* kernels, const at::Tensor& carried) {
  if (TakesNorm(kernels, input, weight, bias, carried)) {
    return OwnNormForward(*kernels, kind, input, weight, bias, eps, stats, carried);
  }
  if (carried.defined()) input.add_(carried);
  return ForwardByPyTorch(kind, input, weight, bias, eps, stats);
}

NormGradients NormBackward(NormKind kind, const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight,
                           const at::Tensor& bias, const NormStats& stats, const KernelLauncher* kernels,
                           const at::Tensor& carried, FiniteMark* mark) {
  if (TakesNormBackward(kernels, grad_output, input, weight, stats, carried)) {
    return OwnNormBackward(*kernels, kind, grad_output, input, weight, bias, stats, carried, mark);
  }
  NormGradients made = BackwardByPyTorch(kind, grad_output, input, weight, bias, stats);
  if (carried.defined()) made.input.add_(carried);
  return made;
}

}  // namespace motley::engine
