// RMSNorm of queries and keys, in place in the fused projection: of each head by itself (Qwen 3), with one weight for all heads
// of queries and one for those of keys, or of all queries of a token together and of all its keys (OLMo 2). Values stay as they
// are.
#pragma once

#include <ATen/core/Tensor.h>

#include "common/model/model_family.h"
#include "worker/engine/operators/attention.h"

namespace motley::engine {

// What the backward needs beside the weights.
struct HeadNormSaved {
  at::Tensor raw;   // [rows, (heads + kv_heads) * head_dim]: queries and keys as they were
  at::Tensor rstd;  // [rows, heads + kv_heads] by head, else [rows, 2]; of half tensors float32
};

// In place on `qkv` [rows, width]. weights: of queries, then of keys; by head [2 * head_dim], else [(heads + kv_heads) *
// head_dim]. norm: of what kind the weights are.
HeadNormSaved HeadNormForward(at::Tensor& qkv, const HeadLayout& layout, HeadNorm kind, const at::Tensor& weights, double eps,
                              NormKind norm = NormKind::kRmsNorm);
// In place on the gradient of `qkv`. Returns that of the weights, made and not added, in the type of the statistics.
at::Tensor HeadNormBackward(at::Tensor& grad_qkv, const HeadNormSaved& saved, const HeadLayout& layout, HeadNorm kind,
                            const at::Tensor& weights, NormKind norm = NormKind::kRmsNorm);

}  // namespace motley::engine
