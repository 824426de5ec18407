#include "worker/engine/operators/half.h"

#include <torch/version.h>

#include "worker/engine/base/torch_pch.h"

namespace motley::engine {
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 11
bool MultipliesIntoFloat32(const at::Tensor& a) { return !a.is_cpu() && IsHalf(a); }
#else
bool MultipliesIntoFloat32(const at::Tensor&) { return false; }
#endif

void Multiply(at::Tensor& product, const at::Tensor& a, const at::Tensor& b) {
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 11
  if (product.scalar_type() != a.scalar_type()) {
    at::mm_out(product, a, b, /*out_dtype=*/at::kFloat);
    return;
  }
#endif
  at::mm_out(product, a, b);
}

void AddProduct(at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
  if (sum.scalar_type() == a.scalar_type()) {
    sum.addmm_(a, b);
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 11
  } else if (MultipliesIntoFloat32(a) && sum.scalar_type() == at::kFloat) {
    at::addmm_out(sum, sum, a, b, /*out_dtype=*/at::kFloat);
#endif
  } else {
    sum.add_(at::mm(a, b));
  }
}

}  // namespace motley::engine
