#include "worker/engine/operators/own_head_loss.h"

#include "worker/engine/base/torch_pch.h"
#include "worker/engine/operators/own_kernels.h"

namespace motley::engine {
namespace {

// `gradient` null: the loss alone.
at::Tensor LaunchHeadLoss(const KernelLauncher& kernels, const at::Tensor& logits, const at::Tensor& like,
                          const at::Tensor& targets, int64_t words, double scale, void* gradient) {
  TORCH_CHECK(targets.scalar_type() == at::kLong && targets.is_contiguous() && targets.numel() == logits.size(0),
              "a head's loss of ", logits.size(0), " rows takes as many targets, side by side");
  at::Tensor losses = at::empty({logits.size(0)}, logits.options().dtype(at::kFloat));
  const kernels::HeadLossArguments arguments = {.logits = logits.const_data_ptr(),
                                                .gradient = gradient,
                                                .targets = targets.const_data_ptr<int64_t>(),
                                                .losses = losses.mutable_data_ptr<float>(),
                                                .columns = logits.size(1),
                                                .rows = static_cast<uint32_t>(logits.size(0)),
                                                .words = static_cast<uint32_t>(words),
                                                .scale = static_cast<float>(scale),
                                                .wide = logits.scalar_type() == like.scalar_type() ? 0u : 1u};
  LaunchOwn(kernels, like, arguments.rows, arguments, kernels::HeadLossArguments::kSharedBytes);
  return losses.sum(at::kDouble);
}

}  // namespace

at::Tensor OwnHeadLoss(const KernelLauncher& kernels, const at::Tensor& logits, const at::Tensor& like, const at::Tensor& targets,
                       int64_t words) {
  return LaunchHeadLoss(kernels, logits, like, targets, words, /*scale=*/1, /*gradient=*/nullptr);
}

LossAndGradient OwnHeadLossAndGradient(const KernelLauncher& kernels, at::Tensor logits, const at::Tensor& like,
                                       const at::Tensor& targets, int64_t words, double scale) {
  at::Tensor gradient = logits.scalar_type() == like.scalar_type() ? logits : at::empty(logits.sizes(), like.options());
  const at::Tensor loss = LaunchHeadLoss(kernels, logits, like, targets, words, scale, gradient.mutable_data_ptr());
  return {loss, gradient};
}

}  // namespace motley::engine
