#include "worker/engine/operators/own_gated.h"

#include <vector>

#include "worker/engine/base/torch_pch.h"
#include "worker/engine/operators/own_kernels.h"

namespace motley::engine {
namespace {

template <typename Arguments>
at::Tensor GatedForward(const KernelLauncher& kernels, const at::Tensor& input) {
  std::vector<int64_t> sizes = input.sizes().vec();
  sizes.back() /= 2;
  at::Tensor output = at::empty(sizes, input.options());
  const Packs packs = PacksOf(output);
  const Arguments arguments = {{input.const_data_ptr(), output.mutable_data_ptr(), packs.all, packs.of_row}};
  LaunchOwn(kernels, input, packs.blocks(), arguments);
  return output;
}

template <typename Arguments>
at::Tensor GatedBackward(const KernelLauncher& kernels, const at::Tensor& grad_output, const at::Tensor& input) {
  at::Tensor grad_input = at::empty_like(input, at::MemoryFormat::Contiguous);
  const Packs packs = PacksOf(grad_output);
  const Arguments arguments = {
      {grad_output.const_data_ptr(), input.const_data_ptr(), grad_input.mutable_data_ptr(), packs.all, packs.of_row}};
  LaunchOwn(kernels, input, packs.blocks(), arguments);
  return grad_input;
}

}  // namespace

at::Tensor OwnSwiGluForward(const KernelLauncher& kernels, const at::Tensor& input) {
  return GatedForward<kernels::SwiGluForwardArguments>(kernels, input);
}
at::Tensor OwnSwiGluBackward(const KernelLauncher& kernels, const at::Tensor& grad_output, const at::Tensor& input) {
  return GatedBackward<kernels::SwiGluBackwardArguments>(kernels, grad_output, input);
}
at::Tensor OwnGeGluForward(const KernelLauncher& kernels, const at::Tensor& input) {
  return GatedForward<kernels::GeGluForwardArguments>(kernels, input);
}
at::Tensor OwnGeGluBackward(const KernelLauncher& kernels, const at::Tensor& grad_output, const at::Tensor& input) {
  return GatedBackward<kernels::GeGluBackwardArguments>(kernels, grad_output, input);
}

}  // namespace motley::engine
