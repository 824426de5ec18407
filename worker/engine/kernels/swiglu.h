// SwiGLU: silu(gate) * up, and both gradients in one pass. Gate and up lie side by side in a row.
//
// In half types it rounds where PyTorch's operators for the same do, which write silu(gate), and backward the gradient of
// silu(gate) * up by gate's half: a rank with kernels and one without differ by what two exponentials differ.
#pragma once

#include "worker/engine/kernels/kernel_types.h"

namespace motley::kernels {

// Where a pack of the output lies in the output and in the input, in elements.
struct SwiGluPlace {
  int64_t narrow, gate, up;
};
template <typename T>
__device__ __forceinline__ SwiGluPlace PlaceOf(uint32_t pack, uint32_t packs_of_row) {
  const int64_t columns = int64_t{packs_of_row} * Pack<T>::kElements;
  const int64_t narrow = int64_t{pack} * Pack<T>::kElements;
  const int64_t gate = narrow + int64_t{pack / packs_of_row} * columns;
  return {narrow, gate, gate + columns};
}

template <typename T>
__global__ void __launch_bounds__(kThreads) SwiGluForward(const SwiGluForwardArguments arguments) {
  const uint32_t at = blockIdx.x * kThreads + threadIdx.x;
  if (at >= arguments.packs) return;
  const SwiGluPlace place = PlaceOf<T>(at, arguments.packs_of_row);
  const T* input = static_cast<const T*>(arguments.input);
  const Pack<T> gate = Load(input + place.gate), up = Load(input + place.up);
  Pack<T> output;
  for (int k = 0; k < Pack<T>::kElements; ++k) {
    const float x = Wide(gate.of[k]);
    output.of[k] = Narrow<T>(Rounded<T>(x / (1 + expf(-x))) * Wide(up.of[k]));
  }
  Store(static_cast<T*>(arguments.output) + place.narrow, output);
}

template <typename T>
__global__ void __launch_bounds__(kThreads) SwiGluBackward(const SwiGluBackwardArguments arguments) {
  const uint32_t at = blockIdx.x * kThreads + threadIdx.x;
  if (at >= arguments.packs) return;
  const SwiGluPlace place = PlaceOf<T>(at, arguments.packs_of_row);
  const T* input = static_cast<const T*>(arguments.input);
  T* grad_input = static_cast<T*>(arguments.grad_input);
  const Pack<T> grad = Load(static_cast<const T*>(arguments.grad_output) + place.narrow);
  const Pack<T> gate = Load(input + place.gate), up = Load(input + place.up);
  Pack<T> grad_gate, grad_up;
  for (int k = 0; k < Pack<T>::kElements; ++k) {
    const float x = Wide(gate.of[k]), dy = Wide(grad.of[k]);
    const float divisor = 1 + expf(-x), sigmoid = 1 / divisor;
    grad_up.of[k] = Narrow<T>(dy * Rounded<T>(x / divisor));
    grad_gate.of[k] = Narrow<T>(Rounded<T>(dy * Wide(up.of[k])) * sigmoid * (1 + x * (1 - sigmoid)));
  }
  Store(grad_input + place.gate, grad_gate);
  Store(grad_input + place.up, grad_up);
}

}  // namespace motley::kernels
