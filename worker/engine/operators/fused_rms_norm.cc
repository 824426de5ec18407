#include "worker/engine/operators/fused_rms_norm.h"

#include "worker/engine/base/torch_pch.h"

namespace motley::engine {

#if __has_include(<ATen/ops/_fused_rms_norm_backward.h>)

bool HasFusedRmsNorm(const at::Tensor& input) { return !input.is_cpu(); }

FusedRmsNorm FusedRmsNormForward(const at::Tensor& input, const at::Tensor& weight, double eps) {
  auto [output, rstd] = at::_fused_rms_norm(input, {input.size(-1)}, weight, eps);
  return {output, rstd};
}

FusedRmsNormGradients FusedRmsNormBackward(const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight,
                                           const at::Tensor& rstd) {
  auto [grad_input, grad_weight] = at::_fused_rms_norm_backward(grad_output, input, {input.size(-1)}, rstd, weight, {true, true});
  return {grad_input, grad_weight};
}

#else  // libtorch 2.7

bool HasFusedRmsNorm(const at::Tensor&) { return false; }

FusedRmsNorm FusedRmsNormForward(const at::Tensor&, const at::Tensor&, double) {
  TORCH_CHECK(false, "this libtorch has no fused RMSNorm");
}

FusedRmsNormGradients FusedRmsNormBackward(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&) {
  TORCH_CHECK(false, "this libtorch has no fused RMSNorm");
}

#endif

}  // namespace motley::engine
