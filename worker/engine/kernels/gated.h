// SwiGLU and GeGLU: silu(gate) * up and gelu(gate) * up, and both gradients in one pass. Gate and up lie side by side in a row.
//
// In half types they round where PyTorch's operators for the same do, which write what is made of the gate, and backward the
// gradient of the product by gate's half: a rank with kernels and one without differ by what two exponentials differ.
#pragma once

#include "worker/engine/kernels/kernel_types.h"

namespace motley::kernels {

// What is made of the gate, and its gradient.
struct Silu {
  __device__ __forceinline__ static float Value(float x) { return x / (1 + expf(-x)); }
  __device__ __forceinline__ static float Gradient(float grad, float x) {
    const float sigmoid = 1 / (1 + expf(-x));
    return grad * sigmoid * (1 + x * (1 - sigmoid));
  }
};

// In the tanh form, x (1 + tanh(u)) / 2, as x sigmoid(2 u), the same number: 1 + tanh(u) has no digits left where x is below -5.
struct Gelu {
  static constexpr float kTwiceBeta = 1.5957691216057308f, kKappa = 0.044715f;  // 2 sqrt(2 / pi)
  __device__ __forceinline__ static float Sigmoid(float x) { return 1 / (1 + expf(-kTwiceBeta * (x + kKappa * (x * x * x)))); }
  __device__ __forceinline__ static float Value(float x) { return x * Sigmoid(x); }
  __device__ __forceinline__ static float Gradient(float grad, float x) {
    const float sigmoid = Sigmoid(x), square = x * x;
    return grad * (sigmoid + x * sigmoid * (1 - sigmoid) * (kTwiceBeta * (1 + 3 * kKappa * square)));
  }
};

// Where a pack of the output lies in the output and in the input, in elements.
struct GatedPlace {
  int64_t narrow, gate, up;
};
template <typename T>
__device__ __forceinline__ GatedPlace PlaceOf(uint32_t pack, uint32_t packs_of_row) {
  const int64_t columns = int64_t{packs_of_row} * Pack<T>::kElements;
  const int64_t narrow = int64_t{pack} * Pack<T>::kElements;
  const int64_t gate = narrow + int64_t{pack / packs_of_row} * columns;
  return {narrow, gate, gate + columns};
}

template <typename T, typename Gate>
__device__ __forceinline__ void GatedForward(const GatedForwardArguments& arguments) {
  const uint32_t at = blockIdx.x * kThreads + threadIdx.x;
  if (at >= arguments.packs) return;
  const GatedPlace place = PlaceOf<T>(at, arguments.packs_of_row);
  const T* input = static_cast<const T*>(arguments.input);
  const Pack<T> gate = Load(input + place.gate), up = Load(input + place.up);
  Pack<T> output;
  for (int k = 0; k < Pack<T>::kElements; ++k) {
    output.of[k] = Narrow<T>(Rounded<T>(Gate::Value(Wide(gate.of[k]))) * Wide(up.of[k]));
  }
  Store(static_cast<T*>(arguments.output) + place.narrow, output);
}

template <typename T, typename Gate>
__device__ __forceinline__ void GatedBackward(const GatedBackwardArguments& arguments) {
  const uint32_t at = blockIdx.x * kThreads + threadIdx.x;
  if (at >= arguments.packs) return;
  const GatedPlace place = PlaceOf<T>(at, arguments.packs_of_row);
  const T* input = static_cast<const T*>(arguments.input);
  T* grad_input = static_cast<T*>(arguments.grad_input);
  const Pack<T> grad = Load(static_cast<const T*>(arguments.grad_output) + place.narrow);
  const Pack<T> gate = Load(input + place.gate), up = Load(input + place.up);
  Pack<T> grad_gate, grad_up;
  for (int k = 0; k < Pack<T>::kElements; ++k) {
    const float x = Wide(gate.of[k]), dy = Wide(grad.of[k]);
    grad_up.of[k] = Narrow<T>(dy * Rounded<T>(Gate::Value(x)));
    grad_gate.of[k] = Narrow<T>(Gate::Gradient(Rounded<T>(dy * Wide(up.of[k])), x));
  }
  Store(grad_input + place.gate, grad_gate);
  Store(grad_input + place.up, grad_up);
}

template <typename T>
__global__ void __launch_bounds__(kThreads) SwiGluForward(const SwiGluForwardArguments arguments) {
  GatedForward<T, Silu>(arguments);
}
template <typename T>
__global__ void __launch_bounds__(kThreads) SwiGluBackward(const SwiGluBackwardArguments arguments) {
  GatedBackward<T, Silu>(arguments);
}
template <typename T>
__global__ void __launch_bounds__(kThreads) GeGluForward(const GeGluForwardArguments arguments) {
  GatedForward<T, Gelu>(arguments);
}
template <typename T>
__global__ void __launch_bounds__(kThreads) GeGluBackward(const GeGluBackwardArguments arguments) {
  GatedBackward<T, Gelu>(arguments);
}

}  // namespace motley::kernels
