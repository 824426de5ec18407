// What is carried past a layer's products, added to what they made, in place. Says in passing whether the sum is finite.
#pragma once

#include "worker/engine/kernels/kernel_types.h"

namespace motley::kernels {

// The bits of the largest element without its sign, and of `largest`: what is not finite is above what is.
template <typename T>
__device__ __forceinline__ uint32_t LargestOf(const Pack<T>& pack, uint32_t largest) {
  for (int k = 0; k < Pack<T>::kElements; ++k) {
    const uint32_t size = BitsOf(Wide(pack.of[k])) & 0x7fffffffu;
    largest = size > largest ? size : largest;
  }
  return largest;
}
// Makes the number none where something was not finite. All threads that write it write the same.
__device__ __forceinline__ void MarkIfNotFinite(uint32_t largest, float* number) {
  if (largest >= 0x7f800000u) *number = FloatOf(0x7fc00000u);
}

template <typename T>
__device__ __forceinline__ Pack<T> SumOfPacks(const Pack<T>& a, const Pack<T>& b) {
  Pack<T> sum;
  for (int k = 0; k < Pack<T>::kElements; ++k) sum.of[k] = Narrow<T>(Wide(a.of[k]) + Wide(b.of[k]));
  return sum;
}

template <typename T>
__global__ void __launch_bounds__(kThreads) ResidualForward(const ResidualForwardArguments arguments) {
  const uint32_t at = blockIdx.x * kThreads + threadIdx.x;
  if (at >= arguments.packs) return;
  const int64_t begin = int64_t{at} * Pack<T>::kElements;
  T* const place = static_cast<T*>(arguments.sum) + begin;
  const Pack<T> sum = SumOfPacks<T>(Load(static_cast<const T*>(place)), Load(static_cast<const T*>(arguments.carried) + begin));
  Store(place, sum);
  MarkIfNotFinite(LargestOf<T>(sum, 0), arguments.not_finite);
}

}  // namespace motley::kernels
