// Rotary positions: dimension i of a head is paired with i + half, and both are turned by the position's angle. A thread turns
// one pack of a head's first half with its partners of the second.
//
// In half types it rounds where PyTorch's operators for the same do, which write the product by the cosine before they add the
// one by the sine: the bits are theirs.
#pragma once

#include "worker/engine/kernels/kernel_types.h"

namespace motley::kernels {

// (a, b) -> (a cos - b sin, b cos + a sin), with sign -1 back.
template <typename T>
__device__ __forceinline__ void Turn(Pack<T>& first, Pack<T>& second, const Pack<T>& cos, const Pack<T>& sin, float sign) {
  for (int k = 0; k < Pack<T>::kElements; ++k) {
    const float a = Wide(first.of[k]), b = Wide(second.of[k]), c = Wide(cos.of[k]), s = sign * Wide(sin.of[k]);
    first.of[k] = Narrow<T>(Rounded<T>(a * c) - b * s);
    second.of[k] = Narrow<T>(Rounded<T>(b * c) + a * s);
  }
}

// Heads in place, of rows with gaps.
template <typename T>
__global__ void __launch_bounds__(kThreads) Rotary(const RotaryArguments arguments) {
  const uint32_t at = blockIdx.x * kThreads + threadIdx.x;
  if (at >= arguments.packs) return;
  const uint32_t pack = at % arguments.packs_of_half, head = at / arguments.packs_of_half;  // of all rows
  const uint32_t row = head / arguments.heads;
  const int64_t half = int64_t{arguments.packs_of_half} * Pack<T>::kElements, column = int64_t{pack} * Pack<T>::kElements;
  T* const of_head = static_cast<T*>(arguments.rows) + row * arguments.row_stride + (head % arguments.heads) * 2 * half + column;
  const int64_t angle = (row % arguments.table_rows) * half + column;
  Pack<T> first = Load(of_head), second = Load(of_head + half);
  Turn(first, second, Load(static_cast<const T*>(arguments.cos) + angle), Load(static_cast<const T*>(arguments.sin) + angle),
       arguments.sign);
  Store(of_head, first);
  Store(of_head + half, second);
}

// The gradients of queries, keys and values side by side; queries' and keys' turned back.
template <typename T>
__global__ void __launch_bounds__(kThreads) PackHeads(const PackHeadsArguments arguments) {
  const uint32_t at = blockIdx.x * kThreads + threadIdx.x;
  if (at >= arguments.packs) return;
  const uint32_t pack = at % arguments.packs_of_half, of_all_rows = at / arguments.packs_of_half;
  const uint32_t heads = arguments.heads, turned = heads + arguments.kv_heads, all = turned + arguments.kv_heads;
  const uint32_t row = of_all_rows / all, head = of_all_rows % all;
  const bool is_query = head < heads, is_turned = head < turned;
  const HeadsPlace& place = is_query ? arguments.q : is_turned ? arguments.k : arguments.v;
  const uint32_t of_place = is_query ? head : is_turned ? head - heads : head - turned;
  const int64_t half = int64_t{arguments.packs_of_half} * Pack<T>::kElements, column = int64_t{pack} * Pack<T>::kElements;
  const T* const from = static_cast<const T*>(place.at) + (row / arguments.seq_len) * place.sample_stride +
                        of_place * place.head_stride + (row % arguments.seq_len) * place.position_stride + column;
  Pack<T> first = Load(from), second = Load(from + half);
  if (is_turned) {
    const int64_t angle = (row % arguments.table_rows) * half + column;
    Turn(first, second, Load(static_cast<const T*>(arguments.cos) + angle), Load(static_cast<const T*>(arguments.sin) + angle),
         -1);
  }
  T* const to = static_cast<T*>(arguments.output) + int64_t{of_all_rows} * 2 * half + column;
  Store(to, first);
  Store(to + half, second);
}

}  // namespace motley::kernels
