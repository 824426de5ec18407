// cuDNN's attention, of NVIDIA cards where ATen chooses it (sm_90 and sm_100 with libtorch 2.11): half types. It takes groups of
// heads as they are. Windows and rows of several documents are flash's.
#pragma once

#include "worker/engine/operators/attention_kernels.h"

namespace motley::engine {

inline constexpr int64_t kCudnnLargestHead = 128;  // beyond it some versions have no backward

// What cuDNN refuses, flash does, from then on as long as the process lives: its log says so once for each shape. Both return the
// same numbers for a head and position, so it does a backward too whose forward was cuDNN's.
AttentionResult CudnnAttentionForward(const AttentionHeads& heads, const AttentionForm& form);
AttentionHeads CudnnAttentionBackward(const at::Tensor& grad_output, const AttentionHeads& heads, const AttentionResult& saved,
                                      const AttentionForm& form);

// Whether it did, of heads like these.
bool CudnnRefused(const AttentionHeads& heads);

}  // namespace motley::engine
