#include "worker/engine/operators/residual.h"

#include "worker/engine/base/torch_pch.h"
#include "worker/engine/operators/own_kernels.h"

namespace motley::engine {

void AddCarried(const at::Tensor& sum, const at::Tensor& carried, const KernelLauncher* kernels, FiniteMark* mark) {
  // Alone the addition is PyTorch's: nothing is read twice.
  if (mark == nullptr || !mark->asks() || !TakenByKernels(kernels, {sum, carried}, sum.size(-1))) {
    sum.add_(carried);
    return;
  }
  const Packs packs = PacksOf(sum);
  const kernels::ResidualForwardArguments arguments = {
      .sum = sum.mutable_data_ptr(), .carried = carried.const_data_ptr(), .not_finite = mark->Take(), .packs = packs.all};
  LaunchOwn(*kernels, sum, packs.blocks(), arguments);
}

}  // namespace motley::engine
