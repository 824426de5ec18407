#include "worker/engine/operators/finite_check.h"

#include "worker/engine/base/torch_pch.h"
#include "worker/engine/operators/half.h"

namespace motley::engine {

void NoteFinite(const at::Tensor& tensor, int64_t position, at::Tensor& first) {
  const at::Tensor sum = IsHalf(tensor) ? tensor.sum(at::kFloat) : tensor.sum();
  first = at::minimum(first, at::where(at::isfinite(sum), first, position));
}

}  // namespace motley::engine
