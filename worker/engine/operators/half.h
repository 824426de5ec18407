// What half types need beside the other operators: ATen has no products of half matrices into a float32 one, and sums and
// exponentials want float32.
#pragma once

#include <ATen/core/Tensor.h>

namespace motley::engine {

inline bool IsHalf(const at::Tensor& t) { return at::isReducedFloatingType(t.scalar_type()); }
// A half tensor in float32; any other as it is.
inline at::Tensor Widened(const at::Tensor& t) { return IsHalf(t) ? t.to(at::kFloat) : t; }

// sum += a b. The sum may be float32 where a and b are half: the product is rounded to their type then, as autograd's is.
void AddProduct(at::Tensor& sum, const at::Tensor& a, const at::Tensor& b);

}  // namespace motley::engine
