// Cross entropy of each row of logits, and its gradient by them: a row is read twice and the gradient written once. One block a
// row. The first read keeps each thread's greatest logit so far, and the sum of exponentials over it; the second goes back from
// the row's end, which the card's cache has longest. A thread loads several packs before it uses the first: a block has the
// multiprocessor alone, and nobody else's loads fill the wait.
//
// What PyTorch's operators round: nothing between the logits and the gradient, whatever the type.
#pragma once

#include "worker/engine/kernels/kernel_types.h"

namespace motley::kernels {

__device__ __forceinline__ float Infinity() { return FloatOf(0x7f800000u); }

// Of some of a row's logits: the greatest, and the sum of exponentials of what the others are less than it.
struct Exponentials {
  float greatest = -Infinity(), sum = 0;
};
// Less a greatest one that is -inf every logit of -inf would be no number.
__device__ __forceinline__ float Base(float greatest) { return greatest == -Infinity() ? 0 : greatest; }
__device__ __forceinline__ float SumOver(const Exponentials& some, float greatest) {
  return some.sum * expf(some.greatest - Base(greatest));
}
__device__ __forceinline__ Exponentials OfWarp(const Exponentials& mine) {
  const float greatest = WarpMax(mine.greatest);
  return {greatest, WarpSum(SumOver(mine, greatest))};
}

// As many logits as a pack of the gradient has, as they are stored.
template <typename Logit, typename T>
struct Logits {
  static constexpr int kElements = Pack<T>::kElements, kPacks = kElements / Pack<Logit>::kElements;
  Pack<Logit> packs[kPacks];

  __device__ __forceinline__ void LoadFrom(const Logit* from) {
    for (int i = 0; i < kPacks; ++i) packs[i] = Load(from + i * Pack<Logit>::kElements);
  }
  __device__ __forceinline__ float At(int k) const {
    return Wide(packs[k / Pack<Logit>::kElements].of[k % Pack<Logit>::kElements]);
  }
};
// Of which a thread loads so many before it uses the first.
inline constexpr int kLogitsAhead = 3;

template <typename Logit, typename T>
__device__ __forceinline__ Exponentials ExponentialsOf(const Logit* row, int64_t columns) {
  using Some = Logits<Logit, T>;
  Exponentials mine;
  const int64_t apart = int64_t{blockDim.x} * Some::kElements;
  for (int64_t at = int64_t{threadIdx.x} * Some::kElements; at < columns; at += kLogitsAhead * apart) {
    Some some[kLogitsAhead];
    MOTLEY_UNROLL
    for (int i = 0; i < kLogitsAhead; ++i) {
      if (at + i * apart < columns) some[i].LoadFrom(row + at + i * apart);
    }
    float greatest = mine.greatest;
    MOTLEY_UNROLL
    for (int i = 0; i < kLogitsAhead; ++i) {
      if (at + i * apart >= columns) continue;
      for (int k = 0; k < Some::kElements; ++k) greatest = fmaxf(greatest, some[i].At(k));
    }
    const float base = Base(greatest);
    float sum = SumOver(mine, greatest);
    MOTLEY_UNROLL
    for (int i = 0; i < kLogitsAhead; ++i) {
      if (at + i * apart >= columns) continue;
      for (int k = 0; k < Some::kElements; ++k) sum += expf(some[i].At(k) - base);
    }
    mine = {greatest, sum};
  }
  return mine;
}

// Of the block's threads together: the same bits in each.
__device__ __forceinline__ Exponentials OfBlock(const Exponentials& mine) {
  Exponentials* const of_warps = SharedMemory<Exponentials>();
  const unsigned lane = threadIdx.x % 32, warps = blockDim.x / 32;  // at most as many as a warp has lanes
  const Exponentials of_warp = OfWarp(mine);
  if (lane == 0) of_warps[threadIdx.x / 32] = of_warp;
  __syncthreads();
  return OfWarp(lane < warps ? of_warps[lane] : Exponentials());
}

template <typename Logit, typename T>
__device__ __forceinline__ void LossOfRow(const HeadLossArguments& arguments) {
  using Some = Logits<Logit, T>;
  const int64_t first = int64_t{blockIdx.x} * arguments.columns, target = arguments.targets[blockIdx.x];
  const Logit* const row = static_cast<const Logit*>(arguments.logits) + first;
  const bool is_word = target >= 0 && target < int64_t{arguments.words};
  // Read before the barrier: behind it the gradient may take the logits' place.
  const float of_target = is_word ? Wide(row[target]) : FloatOf(0x7fffffffu);
  const Exponentials all = OfBlock(ExponentialsOf<Logit, T>(row, arguments.columns));
  if (threadIdx.x == 0) arguments.losses[blockIdx.x] = logf(all.sum) - (of_target - all.greatest);
  if (arguments.gradient == nullptr) return;
  T* const gradient = static_cast<T*>(arguments.gradient) + first;
  const float divisor = 1 / all.sum;
  const int64_t mine = int64_t{threadIdx.x} * Some::kElements, apart = int64_t{blockDim.x} * Some::kElements;
  if (mine >= arguments.columns) return;
  for (int64_t at = mine + (arguments.columns - 1 - mine) / apart * apart; at >= 0; at -= kLogitsAhead * apart) {
    Some some[kLogitsAhead];
    MOTLEY_UNROLL
    for (int i = 0; i < kLogitsAhead; ++i) {
      if (at - i * apart >= 0) some[i].LoadFrom(row + at - i * apart);
    }
    MOTLEY_UNROLL
    for (int i = 0; i < kLogitsAhead; ++i) {
      const int64_t begin = at - i * apart;
      if (begin < 0) continue;
      // Its place in the pack, or none.
      const int of_word = target >= begin && target < begin + Some::kElements ? static_cast<int>(target - begin) : -1;
      Pack<T> made;
      for (int k = 0; k < Some::kElements; ++k) {
        const float softmax = expf(some[i].At(k) - all.greatest) * divisor;
        made.of[k] = Narrow<T>(arguments.scale * (k == of_word ? softmax - 1 : softmax));
      }
      Store(gradient + begin, made);
    }
  }
}

template <typename T>
__global__ void __launch_bounds__(HeadLossArguments::kBlockThreads, 1) HeadLoss(const HeadLossArguments arguments) {
  if (blockIdx.x >= arguments.rows) return;
  if (arguments.wide != 0) {
    LossOfRow<float, T>(arguments);
  } else {
    LossOfRow<T, T>(arguments);
  }
}

}  // namespace motley::kernels
