// AdamW of a range in one pass: the gradient is clipped, both moments and the parameter are stepped, and where it is asked for
// the gradient becomes zero and the parameter is written in the type that computes. As PyTorch's fused operator does it after a
// product with the clip factor, in float32; the kernel's type is the cast's alone.
//
// A range may begin anywhere in each array. A thread takes four elements, from where the array that is written last is at the
// bytes of four; the other arrays are read four at a time where they are, too, and by element where they are not. Of eight, the
// threads of a warp would write 16 bytes of every 32 at once, which a card does at three quarters of the rate.
#pragma once

#include "worker/engine/kernels/kernel_types.h"

namespace motley::kernels {

// Of a thread's elements those that the range has: all but at its ends.
struct Within {
  int first, last;
  __device__ __forceinline__ bool whole() const { return first == 0 && last == AdamWArguments::kTogether; }
};

template <typename T>
struct alignas(AdamWArguments::kTogether * sizeof(T)) Together {
  T of[AdamWArguments::kTogether];
};
template <typename T>
__device__ __forceinline__ bool AtOnce(const T* from, const Within& within) {
  return within.whole() && reinterpret_cast<size_t>(from) % sizeof(Together<T>) == 0;
}
struct Four {
  float of[AdamWArguments::kTogether];

  __device__ __forceinline__ Four(const float* from, const Within& within) {
    if (AtOnce(from, within)) {
      CheckAligned(from);
      const Together<float> all = *reinterpret_cast<const Together<float>*>(from);
      for (int k = 0; k < AdamWArguments::kTogether; ++k) of[k] = all.of[k];
    } else {
      for (int k = 0; k < AdamWArguments::kTogether; ++k) of[k] = k >= within.first && k < within.last ? from[k] : 0;
    }
  }
  template <typename T>
  __device__ __forceinline__ void Write(T* to, const Within& within) const {
    if (AtOnce(to, within)) {
      Together<T> all;
      for (int k = 0; k < AdamWArguments::kTogether; ++k) all.of[k] = Narrow<T>(of[k]);
      *reinterpret_cast<Together<T>*>(to) = all;
    } else {
      for (int k = 0; k < AdamWArguments::kTogether; ++k) {
        if (k >= within.first && k < within.last) to[k] = Narrow<T>(of[k]);
      }
    }
  }
};

// Elements between the last place of the array at the bytes of four and its beginning.
template <typename T>
__device__ __forceinline__ int64_t PastAPack(const T* at) {
  return static_cast<int64_t>(reinterpret_cast<size_t>(at) % (AdamWArguments::kTogether * sizeof(T)) / sizeof(T));
}

template <typename T>
__global__ void __launch_bounds__(kThreads) AdamW(const AdamWArguments arguments) {
  T* const cast = static_cast<T*>(arguments.cast);
  const int64_t lead = cast != nullptr ? PastAPack(cast) : PastAPack(arguments.parameter);
  const int64_t at = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * AdamWArguments::kTogether - lead;
  if (at >= arguments.elements) return;
  const int64_t left = arguments.elements - at;
  const Within within = {at < 0 ? static_cast<int>(-at) : 0,
                         left < AdamWArguments::kTogether ? static_cast<int>(left) : AdamWArguments::kTogether};
  Four gradient(arguments.gradient + at, within);
  Four parameter(arguments.parameter + at, within), mean(arguments.exp_avg + at, within),
      square(arguments.exp_avg_sq + at, within);
  for (int k = 0; k < AdamWArguments::kTogether; ++k) {
    const float g = gradient.of[k] * arguments.clip;
    parameter.of[k] -= arguments.decay * parameter.of[k];
    mean.of[k] = arguments.beta1 * mean.of[k] + arguments.rest1 * g;
    square.of[k] = arguments.beta2 * square.of[k] + arguments.rest2 * g * g;
    parameter.of[k] -= arguments.step * mean.of[k] / (sqrtf(square.of[k]) / arguments.root2 + arguments.eps);
    gradient.of[k] = 0;
  }
  parameter.Write(arguments.parameter + at, within);
  mean.Write(arguments.exp_avg + at, within);
  square.Write(arguments.exp_avg_sq + at, within);
  if (cast != nullptr) parameter.Write(cast + at, within);
  if (arguments.zero != 0) gradient.Write(arguments.gradient + at, within);
}

}  // namespace motley::kernels
