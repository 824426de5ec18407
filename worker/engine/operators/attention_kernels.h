// The kernels that causal attention may run on, one interface for all. Heads apart: [samples, heads, seq_len, head_dim]; k and v
// may have fewer heads, each serves a group of q's.
#pragma once

#include <ATen/core/Tensor.h>

#include "worker/engine/operators/attention_form.h"
#include "worker/engine/operators/borders.h"

namespace motley::engine {

struct AttentionHeads {
  at::Tensor q, k, v;
};
struct AttentionResult {
  at::Tensor output;     // as q
  at::Tensor logsumexp;  // a number for each head and position, or more: of the kernel that made it, for its backward
};

struct AttentionKernel {
  const char* name;
  AttentionResult (*forward)(const AttentionHeads& heads, const AttentionForm& form);
  // Gradients of q, k and v.
  AttentionHeads (*backward)(const at::Tensor& grad_output, const AttentionHeads& heads, const AttentionResult& saved,
                             const AttentionForm& form);
  // The same of each document by itself.
  AttentionResult (*forward_apart)(const AttentionHeads& heads, const Borders& borders, const AttentionForm& form);
  AttentionHeads (*backward_apart)(const at::Tensor& grad_output, const AttentionHeads& heads, const AttentionResult& saved,
                                   const Borders& borders, const AttentionForm& form);
};

// By device, type and shape alone, so forward and backward choose the same. Borders and windows change nothing of it.
const AttentionKernel& KernelFor(const AttentionHeads& heads);
// Where ATen would take flash or cuDNN (`choice`: at::SDPBackend's number), ours for heads of so many numbers. Null: it would
// not.
const AttentionKernel* KernelOfHalfTypes(int64_t choice, int64_t head_dim);

// Whether the host's kernel knows heads that share keys and values. Else these are repeated for it, which takes room.
bool HostKnowsGroups();

// The textbook's products, on any device and in any type; keeps no square, but has two in backward. For what no other kernel
// takes: float64 on a card, heads of odd sizes.
const AttentionKernel& MathAttention();
// Those of NVIDIA's cards: of half types on newer ones, cuDNN's on the newest, and of float32 and older ones.
const AttentionKernel& FlashAttention();
const AttentionKernel& CudnnAttention();
const AttentionKernel& EfficientAttention();

}  // namespace motley::engine
