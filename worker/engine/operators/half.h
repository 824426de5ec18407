// What half types need beside the other operators: products of half matrices into a float32 one, and sums and exponentials in
// float32.
#pragma once

#include <ATen/core/Tensor.h>

namespace motley::engine {

inline bool IsHalf(const at::Tensor& t) { return at::isReducedFloatingType(t.scalar_type()); }
// A half tensor in float32; any other as it is.
inline at::Tensor Widened(const at::Tensor& t) { return IsHalf(t) ? t.to(at::kFloat) : t; }

// Whether `a`'s device and libtorch multiply half types into float32: cards with libtorch 2.11.
bool MultipliesIntoFloat32(const at::Tensor& a);
// product = a b, of a's type or, where MultipliesIntoFloat32, float32.
void Multiply(at::Tensor& product, const at::Tensor& a, const at::Tensor& b);

// sum += a b. The sum may be float32 where a and b are half. Cards add in float32 then (libtorch 2.11); elsewhere ATen has no
// such product: it is rounded to a's and b's type first, as autograd's is.
void AddProduct(at::Tensor& sum, const at::Tensor& a, const at::Tensor& b);

}  // namespace motley::engine
