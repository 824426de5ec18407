#include "worker/engine/operators/half.h"

#include "worker/engine/base/torch_pch.h"

namespace motley::engine {

void AddProduct(at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
  if (sum.scalar_type() == a.scalar_type()) {
    sum.addmm_(a, b);
  } else {
    sum.add_(at::mm(a, b));
  }
}

}  // namespace motley::engine
