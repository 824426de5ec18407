#include "worker/engine/operators/finite_check.h"

#include <cmath>

#include "worker/engine/base/torch_pch.h"

namespace motley::engine {

FiniteCheck::FiniteCheck(int64_t positions, int64_t microbatches, const at::TensorOptions& type)
    : sums_(at::zeros({positions, microbatches}, type)) {}

void FiniteCheck::Note(const at::Tensor& made, int64_t position, int64_t microbatch) {
  at::Tensor sum = sums_.select(0, position).select(0, microbatch);
  at::sum_out(sum, made, at::OptionalIntArrayRef(), /*keepdim=*/false, sums_.scalar_type());
}

FiniteMark FiniteCheck::MarkOf(int64_t position, int64_t microbatch) const {
  return FiniteMark(sums_.select(0, position).select(0, microbatch));
}

int64_t FiniteCheck::First() const {
  const at::Tensor sums = sums_.to(at::kCPU, at::kDouble);
  const auto* const values = sums.const_data_ptr<double>();
  for (int64_t i = 0; i < sums.numel(); ++i) {
    if (!std::isfinite(values[i])) return i / sums.size(1);
  }
  return sums.size(0);
}

}  // namespace motley::engine
