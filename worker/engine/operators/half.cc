#include "worker/engine/operators/half.h"

#include <torch/version.h>

#include "worker/engine/base/torch_pch.h"

namespace motley::engine {
namespace {

// False: there is no such product.
bool AddHalfProduct(at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 11
  if (a.is_cpu() || !IsHalf(a) || sum.scalar_type() != at::kFloat) return false;
  at::addmm_out(sum, sum, a, b, /*out_dtype=*/at::kFloat);
  return true;
#else
  return false;
#endif
}

}  // namespace

void AddProduct(at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
  if (sum.scalar_type() == a.scalar_type()) {
    sum.addmm_(a, b);
  } else if (!AddHalfProduct(sum, a, b)) {
    sum.add_(at::mm(a, b));
  }
}

}  // namespace motley::engine
