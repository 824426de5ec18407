// The operator table: what each explicit operator of a unit costs. The engine allocates by it, the planner and the
// simulator price by it, an emulated device is slowed down by it. One table, so that they cannot disagree.
//
// FLOPs count multiply and add as two. Matrix products and attention count; norms, activations and residuals count
// their element operations. Attention is causal and counted at half the full square.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "common/base/dtype.h"
#include "common/model/model.h"
#include "common/model/parameters.h"

namespace motley {

enum class Op {
  kEmbed,  // token (and learned position) lookup
  kNorm1,
  kQkv,
  kRotary,
  kAttention,
  kAttnOut,
  kResidual1,
  kNorm2,
  kUp /* gate and up for SwiGLU */,
  kActivation,
  kDown,
  kResidual2,
  kFinalNorm,
  kLmHeadLoss,  // chunked projection + cross entropy
};
inline constexpr int kNumOps = static_cast<int>(Op::kLmHeadLoss) + 1;
std::string_view OpName(Op op);

struct OpCost {
  Op op;
  double forward_flops = 0;
  double backward_flops = 0;  // input and weight gradients together
  int64_t saved_bytes = 0;    // tensors this operator keeps for its backward (counted once, by the keeper)
};

// In execution order, for one microbatch of `samples` sequences of `seq_len` tokens.
std::vector<OpCost> UnitOperators(const ModelShape& shape, UnitKind unit, int64_t samples, int64_t seq_len, DType dtype);

double ForwardFlops(const ModelShape& shape, UnitKind unit, int64_t samples, int64_t seq_len);
double BackwardFlops(const ModelShape& shape, UnitKind unit, int64_t samples, int64_t seq_len);
// Kept from forward to backward when nothing is recomputed: everything the operators save, the unit's input included.
int64_t SavedBytes(const ModelShape& shape, UnitKind unit, int64_t samples, int64_t seq_len, DType dtype);
// The unit's input activation (samples x seq_len x hidden): all that full recomputation keeps.
int64_t BoundaryBytes(const ModelShape& shape, int64_t samples, int64_t seq_len, DType dtype);
// Rows of logits that the LM head computes at once; bounds the head's workspace.
inline constexpr int64_t kHeadChunkTokens = 1024;

// FLOPs of AdamW per owned element.
inline constexpr double kOptimizerFlopsPerElement = 12;

}  // namespace motley
