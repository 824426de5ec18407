// The sums of a product's gradient over its rows, which are its bias's gradient. In one order always: a thread adds every 32nd
// row of a part in float32, a block's 32 such sums are added one after the other, and a second launch adds the parts' sums in the
// same way to the gradient that is there.
#pragma once

#include "worker/engine/kernels/kernel_types.h"

namespace motley::kernels {

template <typename T>
__device__ __forceinline__ void SumRows(const BiasGradientArguments& arguments) {
  constexpr uint32_t kElements = Pack<T>::kElements, kColumns = kSumPacks * kElements;
  const uint32_t groups = (arguments.columns + kColumns - 1) / kColumns;
  const uint32_t part = blockIdx.x / groups, first_column = blockIdx.x % groups * kColumns;
  const uint32_t lane = threadIdx.x / kSumPacks, column = threadIdx.x % kSumPacks * kElements;
  const uint32_t begin = part * arguments.rows_of_part;
  const uint32_t end = arguments.rows - begin < arguments.rows_of_part ? arguments.rows : begin + arguments.rows_of_part;
  float sums[kElements] = {};
  if (first_column + column < arguments.columns) {
    const T* const input = static_cast<const T*>(arguments.input) + first_column + column;
    for (uint32_t row = begin + lane; row < end; row += kSumRows) {
      const Pack<T> pack = Load(input + int64_t{row} * arguments.columns);
      for (uint32_t k = 0; k < kElements; ++k) sums[k] += Wide(pack.of[k]);
    }
  }
  float* const shared = SharedMemory<float>();  // [kSumRows, kColumns]
  for (uint32_t k = 0; k < kElements; ++k) shared[lane * kColumns + column + k] = sums[k];
  __syncthreads();
  const uint32_t mine = threadIdx.x;
  if (mine >= kColumns || first_column + mine >= arguments.columns) return;
  float sum = 0;
  for (uint32_t row = 0; row < kSumRows; ++row) sum += shared[row * kColumns + mine];
  float* const output = arguments.output + int64_t{part} * arguments.columns + first_column + mine;
  *output = arguments.adds != 0 ? *output + sum : sum;
}

template <typename T>
__global__ void __launch_bounds__(kThreads) BiasGradient(const BiasGradientArguments arguments) {
  if (arguments.rows == 0) return;
  if (arguments.of_sums != 0) {
    SumRows<float>(arguments);
  } else {
    SumRows<T>(arguments);
  }
}

}  // namespace motley::kernels
