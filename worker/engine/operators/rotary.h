// Rotary positions in HuggingFace's rotate_half convention: dimension i of a head is paired with i + head_dim / 2.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "common/model/model.h"

namespace motley::engine {

class KernelLauncher;

// One row per position; both halves of a head use the same angles, so only head_dim / 2 columns are kept.
struct RotaryTables {
  at::Tensor cos, sin;  // [seq_len, head_dim / 2], or of rows with borders [samples, seq_len, head_dim / 2]; undefined: none
  bool any() const { return cos.defined(); }
  int64_t half() const { return cos.size(-1); }
};

// Angles position * theta^(-2i / head_dim), or their scaled frequencies, computed in float64 and cast at the end.
RotaryTables MakeRotaryTables(int64_t seq_len, int64_t head_dim, double theta, at::ScalarType dtype,
                              const RopeScaling& scaling = {});

// Of positions that count from 0 in each document: [samples * seq_len] int32, rows of `tables`.
RotaryTables TablesAt(const RotaryTables& tables, const at::Tensor& positions, int64_t samples);

// In place on the first `heads` heads of [samples, seq_len, columns]; what stands behind them stays. `kernels`: the device's own;
// null: none.
void RotaryForward(const RotaryTables& tables, at::Tensor& rows, int64_t heads, const KernelLauncher* kernels = nullptr);
// In place on the gradient: a rotation's transpose is the rotation back.
void RotaryBackward(const RotaryTables& tables, at::Tensor& grad_rows, int64_t heads, const KernelLauncher* kernels = nullptr);

}  // namespace motley::engine
