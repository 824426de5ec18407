#include "worker/engine/operators/own_swiglu.h"

#include <vector>

#include "worker/engine/base/torch_pch.h"
#include "worker/engine/operators/own_kernels.h"

namespace motley::engine {

at::Tensor OwnSwiGluForward(const KernelLauncher& kernels, const at::Tensor& input) {
  std::vector<int64_t> sizes = input.sizes().vec();
  sizes.back() /= 2;
  at::Tensor output = at::empty(sizes, input.options());
  const Packs packs = PacksOf(output);
  const kernels::SwiGluForwardArguments arguments = {input.const_data_ptr(), output.mutable_data_ptr(), packs.all, packs.of_row};
  LaunchOwn(kernels, input, packs.blocks(), arguments);
  return output;
}

at::Tensor OwnSwiGluBackward(const KernelLauncher& kernels, const at::Tensor& grad_output, const at::Tensor& input) {
  at::Tensor grad_input = at::empty_like(input, at::MemoryFormat::Contiguous);
  const Packs packs = PacksOf(grad_output);
  const kernels::SwiGluBackwardArguments arguments = {grad_output.const_data_ptr(), input.const_data_ptr(),
                                                      grad_input.mutable_data_ptr(), packs.all, packs.of_row};
  LaunchOwn(kernels, input, packs.blocks(), arguments);
  return grad_input;
}

}  // namespace motley::engine
