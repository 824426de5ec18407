#include "worker/engine/operators/own_adamw.h"

#include "worker/engine/base/torch_pch.h"
#include "worker/engine/operators/own_kernels.h"

namespace motley::engine {

bool AdamWTakenByKernels(const KernelLauncher* kernels, const AdamWRange& range) {
  if (kernels == nullptr || range.parameter.numel() == 0) return false;
  for (const at::Tensor& tensor : {range.gradient, range.parameter, range.exp_avg, range.exp_avg_sq}) {
    if (tensor.scalar_type() != at::kFloat || !tensor.is_contiguous()) return false;
  }
  return !range.cast.defined() || (KernelTypeOf(range.cast) && range.cast.is_contiguous());
}

void OwnAdamW(const KernelLauncher& kernels, const AdamWFactors& factors, const AdamWRange& range) {
  using Arguments = kernels::AdamWArguments;
  constexpr int64_t kOfBlock = int64_t{Arguments::kTogether} * kernels::kThreads;
  const int64_t elements = range.parameter.numel();
  const Arguments arguments = {.gradient = static_cast<float*>(range.gradient.mutable_data_ptr()),
                               .parameter = static_cast<float*>(range.parameter.mutable_data_ptr()),
                               .exp_avg = static_cast<float*>(range.exp_avg.mutable_data_ptr()),
                               .exp_avg_sq = static_cast<float*>(range.exp_avg_sq.mutable_data_ptr()),
                               .cast = range.cast.defined() ? range.cast.mutable_data_ptr() : nullptr,
                               .elements = elements,
                               .clip = static_cast<float>(factors.clip),
                               .decay = static_cast<float>(factors.decay),
                               .beta1 = static_cast<float>(factors.beta1),
                               .rest1 = static_cast<float>(1 - factors.beta1),
                               .beta2 = static_cast<float>(factors.beta2),
                               .rest2 = static_cast<float>(1 - factors.beta2),
                               .step = static_cast<float>(factors.step),
                               .root2 = static_cast<float>(factors.root2),
                               .eps = static_cast<float>(factors.eps),
                               .zero = range.zeroes_gradient ? 1u : 0u};
  // Of the first thread's elements all but one may stand before the range.
  const int64_t blocks = (elements + Arguments::kTogether - 1 + kOfBlock - 1) / kOfBlock;
  LaunchOwn(kernels, range.cast.defined() ? range.cast : range.parameter, static_cast<unsigned>(blocks), arguments);
}

}  // namespace motley::engine
