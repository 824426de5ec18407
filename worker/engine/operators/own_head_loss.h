// Cross entropy of a chunk's logits and its gradient by one kernel of our own, as lm_head_loss.h has them, of logits that are
// taken (own_kernels.h). A target that is no word makes a loss that is no number. May throw c10::Error.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "worker/engine/kernels/kernel_launcher.h"

namespace motley::engine {

// `logits` [rows, columns], of `like`'s type or float32, -inf behind the words. The rows' sum, a float64 scalar.
at::Tensor OwnHeadLoss(const KernelLauncher& kernels, const at::Tensor& logits, const at::Tensor& like, const at::Tensor& targets,
                       int64_t words);

struct LossAndGradient {
  at::Tensor loss;      // OwnHeadLoss's to the bit
  at::Tensor gradient;  // of scale * loss by the logits, in `like`'s type: in their place where that is theirs
};
LossAndGradient OwnHeadLossAndGradient(const KernelLauncher& kernels, at::Tensor logits, const at::Tensor& like,
                                       const at::Tensor& targets, int64_t words, double scale);

}  // namespace motley::engine
