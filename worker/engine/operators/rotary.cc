#include "worker/engine/operators/rotary.h"

#include <numbers>

#include "worker/engine/base/torch_pch.h"
#include "worker/engine/operators/own_kernels.h"
#include "worker/engine/operators/own_rotary.h"

namespace motley::engine {
namespace {

// (a, b) -> (a cos - b s, b cos + a s), s = sign * sin.
void Rotate(const RotaryTables& tables, double sign, at::Tensor& rows, int64_t heads, const KernelLauncher* kernels) {
  const int64_t half = tables.half();
  if (TakenByKernels(kernels, {rows, tables.cos, tables.sin}, half)) return OwnRotary(*kernels, tables, sign, rows, heads);
  const at::Tensor turned = rows.narrow(-1, 0, heads * 2 * half).unflatten(-1, {heads, 2 * half});
  at::Tensor first = turned.narrow(-1, 0, half), second = turned.narrow(-1, half, half);
  const at::Tensor cos = tables.cos.unsqueeze(-2), sin = tables.sin.unsqueeze(-2);  // [.., seq_len, 1, half]
  const at::Tensor rotated = at::mul(second, cos).addcmul_(first, sin, sign);
  first.mul_(cos).addcmul_(second, sin, -sign);
  second.copy_(rotated);
}

// As transformers' rope_type "llama3" has them, in place.
void Scale(const RopeScaling& scaling, at::Tensor& frequencies) {
  if (scaling.factor == 1) return;
  const at::Tensor turns = frequencies * (static_cast<double>(scaling.original_max_positions) / (2 * std::numbers::pi));
  const double low = scaling.low_freq_factor, high = scaling.high_freq_factor;
  const at::Tensor kept = turns.sub(low).div_(high - low).clamp_(0, 1);  // 1: as it is, 0: divided
  frequencies.mul_(kept + (1 - kept) / scaling.factor);
}

}  // namespace

RotaryTables MakeRotaryTables(int64_t seq_len, int64_t head_dim, double theta, at::ScalarType dtype, const RopeScaling& scaling) {
  const auto f64 = at::TensorOptions().dtype(at::kDouble);
  const at::Tensor exponents = at::arange(0, head_dim, 2, f64).div_(static_cast<double>(head_dim));
  at::Tensor frequencies = at::pow(theta, exponents).reciprocal_();
  Scale(scaling, frequencies);
  const at::Tensor angles = at::outer(at::arange(seq_len, f64), frequencies);
  return {angles.cos().to(dtype), angles.sin().to(dtype)};
}

RotaryTables TablesAt(const RotaryTables& tables, const at::Tensor& positions, int64_t samples) {
  const auto gathered = [&](const at::Tensor& table) { return table.index_select(0, positions).unflatten(0, {samples, -1}); };
  return {gathered(tables.cos), gathered(tables.sin)};
}

void RotaryForward(const RotaryTables& tables, at::Tensor& rows, int64_t heads, const KernelLauncher* kernels) {
  Rotate(tables, 1.0, rows, heads, kernels);
}
void RotaryBackward(const RotaryTables& tables, at::Tensor& grad_rows, int64_t heads, const KernelLauncher* kernels) {
  Rotate(tables, -1.0, grad_rows, heads, kernels);
}

}  // namespace motley::engine
