#include "worker/engine/operators/activation.h"

#include "worker/engine/base/torch_pch.h"
#include "worker/engine/operators/own_gated.h"
#include "worker/engine/operators/own_kernels.h"

namespace motley::engine {
namespace {

struct GateUp {
  at::Tensor gate, up;
};
GateUp Split(const at::Tensor& fused) {
  const int64_t width = fused.size(-1) / 2;
  return {fused.narrow(-1, 0, width), fused.narrow(-1, width, width)};
}

}  // namespace

at::Tensor GeluForward(const at::Tensor& input) { return at::gelu(input, "tanh"); }
at::Tensor GeluBackward(const at::Tensor& grad_output, const at::Tensor& input) {
  return at::gelu_backward(grad_output, input, "tanh");
}

at::Tensor SwiGluForward(const at::Tensor& input, const KernelLauncher* kernels) {
  if (TakenByKernels(kernels, {input}, input.size(-1) / 2)) return OwnSwiGluForward(*kernels, input);
  const auto [gate, up] = Split(input);
  return at::silu(gate).mul_(up);
}

at::Tensor SwiGluBackward(const at::Tensor& grad_output, const at::Tensor& input, const KernelLauncher* kernels) {
  if (TakenByKernels(kernels, {grad_output, input}, grad_output.size(-1))) {
    return OwnSwiGluBackward(*kernels, grad_output, input);
  }
  const auto [gate, up] = Split(input);
  at::Tensor grad_input = at::empty_like(input, at::MemoryFormat::Contiguous);
  auto [grad_gate, grad_up] = Split(grad_input);
  at::mul_out(grad_up, grad_output, at::silu(gate));
  at::silu_backward_out(grad_gate, at::mul(grad_output, up), gate);
  return grad_input;
}

at::Tensor GeGluForward(const at::Tensor& input, const KernelLauncher* kernels) {
  if (TakenByKernels(kernels, {input}, input.size(-1) / 2)) return OwnGeGluForward(*kernels, input);
  const auto [gate, up] = Split(input);
  return at::gelu(gate, "tanh").mul_(up);
}

at::Tensor GeGluBackward(const at::Tensor& grad_output, const at::Tensor& input, const KernelLauncher* kernels) {
  if (TakenByKernels(kernels, {grad_output, input}, grad_output.size(-1))) {
    return OwnGeGluBackward(*kernels, grad_output, input);
  }
  const auto [gate, up] = Split(input);
  at::Tensor grad_input = at::empty_like(input, at::MemoryFormat::Contiguous);
  auto [grad_gate, grad_up] = Split(grad_input);
  at::mul_out(grad_up, grad_output, at::gelu(gate, "tanh"));
  at::gelu_backward_out(grad_gate, at::mul(grad_output, up), gate, "tanh");
  return grad_input;
}

at::Tensor ActivationForward(ActivationKind kind, const at::Tensor& input, const KernelLauncher* kernels) {
  switch (kind) {
    case ActivationKind::kGeluTanh:
      return GeluForward(input);
    case ActivationKind::kSwiGlu:
      return SwiGluForward(input, kernels);
    case ActivationKind::kGeGlu:
      return GeGluForward(input, kernels);
  }
  TORCH_CHECK(false, "no activation of kind ", static_cast<int>(kind));
}

at::Tensor ActivationBackward(ActivationKind kind, const at::Tensor& grad_output, const at::Tensor& input,
                              const KernelLauncher* kernels) {
  switch (kind) {
    case ActivationKind::kGeluTanh:
      return GeluBackward(grad_output, input);
    case ActivationKind::kSwiGlu:
      return SwiGluBackward(grad_output, input, kernels);
    case ActivationKind::kGeGlu:
      return GeGluBackward(grad_output, input, kernels);
  }
  TORCH_CHECK(false, "no activation of kind ", static_cast<int>(kind));
}

}  // namespace motley::engine
