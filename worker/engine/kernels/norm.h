// LayerNorm, RMSNorm and RMSNorm by 1 + w, over rows: n = (x - mean) rstd, y = n (w + weight_plus) + bias. Forward with the
// residual that is added before it, backward with the gradient that is carried past it.
//
// In half types it rounds where the operators write that it stands for: the residual's sum before the norm reads it, and the
// norm's gradient before what is carried is added. A kernel that is given neither computes the same bits beside them.
#pragma once

#include "worker/engine/kernels/kernel_types.h"
#include "worker/engine/kernels/residual.h"

namespace motley::kernels {

inline constexpr uint32_t kNormLanes = 32, kNormWarps = kThreads / kNormLanes;
// Packs of a row that a thread of the forward holds in registers. What is beyond them it reads again.
inline constexpr uint32_t kNormHeld = 4;
// The same of the backward, beside two more for each.
inline constexpr uint32_t kNormHeldBackward = 1;
// Blocks of a multiprocessor: rows wait for memory, and others run meanwhile. As many as the card's code does not spill for.
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ < 860 || __CUDA_ARCH__ >= 1000)
inline constexpr int kNormBlocks = 3;
#else
inline constexpr int kNormBlocks = 4;
#endif

// Threads that share a row: some warps of a block.
struct NormTeam {
  uint32_t warps, threads, team, lane;

  __device__ __forceinline__ explicit NormTeam(uint32_t warps_of_row)
      : warps(warps_of_row),
        threads(warps_of_row * kNormLanes),
        team(threadIdx.x / threads),
        lane(threadIdx.x - team * threads) {}
  __device__ __forceinline__ uint32_t teams() const { return kNormWarps / warps; }

  // Of the team, with the same bits in each of its threads. All threads of the block call it; `given`: room for a number a warp.
  __device__ __forceinline__ float Sum(float value, float* given) const {
    const float of_warp = WarpSum(value);
    if (warps == 1) return of_warp;
    if (threadIdx.x % kNormLanes == 0) given[threadIdx.x / kNormLanes] = of_warp;
    __syncthreads();
    if (team >= teams()) return 0;
    float sum = 0;
    for (uint32_t one = team * warps; one < (team + 1) * warps; ++one) sum += given[one];
    return sum;
  }
};

// body(pack, what it holds) for each pack of a row that the caller has.
template <typename T, typename Body>
__device__ __forceinline__ void ForEachPackOfNorm(const NormTeam& of, const Pack<T> (&held)[kNormHeld], const T* row,
                                                  uint32_t packs, const Body& body) {
  MOTLEY_UNROLL
  for (uint32_t i = 0; i < kNormHeld; ++i) {
    if (of.lane + i * of.threads < packs) body(of.lane + i * of.threads, held[i]);
  }
  for (uint32_t pack = of.lane + kNormHeld * of.threads; pack < packs; pack += of.threads) {
    body(pack, Load(row + int64_t{pack} * Pack<T>::kElements));
  }
}

// What is carried, to what is held and to the packs beyond it. All are loaded before the first is stored: a store may change what
// a later load reads, for all that the compiler knows.
template <typename T>
__device__ __forceinline__ void AddCarriedToNorm(const NormTeam& of, Pack<T> (&held)[kNormHeld], const T* input, const T* carried,
                                                 T* sum, uint32_t packs) {
  MOTLEY_UNROLL
  for (uint32_t i = 0; i < kNormHeld; ++i) {
    const uint32_t pack = of.lane + i * of.threads;
    if (pack < packs) held[i] = SumOfPacks<T>(held[i], Load(carried + int64_t{pack} * Pack<T>::kElements));
  }
  MOTLEY_UNROLL
  for (uint32_t i = 0; i < kNormHeld; ++i) {
    const uint32_t pack = of.lane + i * of.threads;
    if (pack < packs) Store(sum + int64_t{pack} * Pack<T>::kElements, held[i]);
  }
  for (uint32_t pack = of.lane + kNormHeld * of.threads; pack < packs; pack += of.threads) {
    const int64_t at = int64_t{pack} * Pack<T>::kElements;
    Store(sum + at, SumOfPacks<T>(Load(input + at), Load(carried + at)));
  }
}

// A row has so many warps that each thread can hold its packs, if eight are enough for it.
template <typename T>
__global__ void __launch_bounds__(kThreads, kNormBlocks) NormForward(const NormForwardArguments arguments) {
  if (arguments.rows == 0) return;
  const NormTeam of(arguments.warps_of_row);
  float* const given = SharedMemory<float>();  // [2][kNormWarps]
  const int64_t row = int64_t{blockIdx.x} * of.teams() + of.team;
  const bool mine = of.team < of.teams() && row < arguments.rows;
  const uint32_t packs = mine ? arguments.packs_of_row : 0;  // of no row: nothing but the sums' barriers
  const int64_t begin = mine ? row * packs * Pack<T>::kElements : 0;
  const T* input = static_cast<const T*>(arguments.input) + begin;
  Pack<T> held[kNormHeld];
  MOTLEY_UNROLL
  for (uint32_t i = 0; i < kNormHeld; ++i) {
    if (of.lane + i * of.threads < packs) held[i] = Load(input + int64_t{of.lane + i * of.threads} * Pack<T>::kElements);
  }
  if (arguments.carried != nullptr) {
    T* const sum = static_cast<T*>(arguments.sum) + begin;
    AddCarriedToNorm<T>(of, held, input, static_cast<const T*>(arguments.carried) + begin, sum, packs);
    input = sum;
  }
  const float columns = static_cast<float>(arguments.packs_of_row * Pack<T>::kElements);
  float mean = 0;
  if (arguments.mean != nullptr) {
    float total = 0;
    ForEachPackOfNorm<T>(of, held, input, packs, [&](uint32_t, const Pack<T>& x) {
      for (int k = 0; k < Pack<T>::kElements; ++k) total += Wide(x.of[k]);
    });
    mean = of.Sum(total, given) / columns;
    if (mine && of.lane == 0) arguments.mean[row] = mean;
  }
  float squares = 0;
  ForEachPackOfNorm<T>(of, held, input, packs, [&](uint32_t, const Pack<T>& x) {
    for (int k = 0; k < Pack<T>::kElements; ++k) squares += (Wide(x.of[k]) - mean) * (Wide(x.of[k]) - mean);
  });
  const float rstd = rsqrtf(of.Sum(squares, given + kNormWarps) / columns + arguments.eps);
  if (mine && of.lane == 0) arguments.rstd[row] = rstd;
  const T *weight = static_cast<const T*>(arguments.weight), *bias = static_cast<const T*>(arguments.bias);
  T* output = static_cast<T*>(arguments.output) + begin;
  ForEachPackOfNorm<T>(of, held, input, packs, [&](uint32_t pack, const Pack<T>& x) {
    const int64_t at = int64_t{pack} * Pack<T>::kElements;
    const Pack<T> w = Load(weight + at);
    Pack<T> y, b;
    if (bias != nullptr) b = Load(bias + at);
    for (int k = 0; k < Pack<T>::kElements; ++k) {
      const float scaled = (Wide(x.of[k]) - mean) * rstd * (Wide(w.of[k]) + arguments.weight_plus);
      y.of[k] = Narrow<T>(bias != nullptr ? scaled + Wide(b.of[k]) : scaled);
    }
    Store(output + at, y);
  });
}

// The block's sums of columns: those of the weight, behind them those of the bias. Of a pack's elements four lie side by side, in
// planes of four of each pack, so that a warp's 16-byte accesses meet no bank of shared memory twice.
template <typename T>
__device__ __forceinline__ uint32_t PlaceOfNormSum(uint32_t pack, uint32_t four, uint32_t packs) {
  return (four * packs + pack) * 4;
}
// The column that stands at such a place, or columns + the bias's.
template <typename T>
__device__ __forceinline__ uint32_t ColumnOfNormSum(uint32_t place, uint32_t packs) {
  const uint32_t columns = packs * Pack<T>::kElements, in_part = place % columns, four = in_part / 4;
  return place / columns * columns + four % packs * Pack<T>::kElements + four / packs * 4 + in_part % 4;
}

// What the backward knows of a row.
struct NormRow {
  float mean, rstd, of_gradient, of_product;  // the last two: means over the row, of g and of g n, g = dy (w + weight_plus)
};

// Adds to the sums of columns, which are the caller's own, and returns the gradient of a pack of x.
template <typename T>
__device__ __forceinline__ Pack<T> NormGradient(const NormRow& row, const Pack<T>& grad, const Pack<T>& input, const Pack<T>& w,
                                                float weight_plus, uint32_t pack, uint32_t packs, bool with_bias, float* sums) {
  Pack<T> made;
  float of_weight[Pack<T>::kElements];
  for (int k = 0; k < Pack<T>::kElements; ++k) {
    const float dy = Wide(grad.of[k]), normed = (Wide(input.of[k]) - row.mean) * row.rstd;
    made.of[k] = Narrow<T>(row.rstd * (dy * (Wide(w.of[k]) + weight_plus) - row.of_gradient - normed * row.of_product));
    of_weight[k] = dy * normed;
  }
  for (uint32_t four = 0; four < Pack<T>::kElements / 4; ++four) {
    float* const mine = sums + PlaceOfNormSum<T>(pack, four, packs);
    Pack<float> sum = Load(mine);
    for (uint32_t k = 0; k < 4; ++k) sum.of[k] += of_weight[four * 4 + k];
    Store(mine, sum);
    if (!with_bias) continue;
    float* const of_bias = mine + packs * Pack<T>::kElements;
    sum = Load(of_bias);
    for (uint32_t k = 0; k < 4; ++k) sum.of[k] += Wide(grad.of[four * 4 + k]);
    Store(of_bias, sum);
  }
  return made;
}

// A block walks over rows. A row has a team of warps, each of whose threads has the same columns of every row and so adds them up
// alone, in one order; the teams' sums are added when the block ends, in theirs.
template <typename T>
__global__ void __launch_bounds__(kThreads, kNormBlocks) NormBackward(const NormBackwardArguments arguments) {
  if (arguments.rows == 0) return;
  constexpr uint32_t kElements = Pack<T>::kElements, kWarps = kThreads / kNormLanes;
  const uint32_t packs = arguments.packs_of_row, warps = arguments.warps_of_row, teams = kWarps / warps,
                 threads = warps * kNormLanes;
  const uint32_t warp = threadIdx.x / kNormLanes, team = warp / warps, lane = threadIdx.x - team * threads;
  const bool centred = arguments.mean != nullptr;
  const uint32_t numbers = packs * kElements * (centred ? 2 : 1);
  const float columns = static_cast<float>(packs * kElements);
  float* const given = SharedMemory<float>();  // [2][kWarps][2], by turns: a warp's sums of a row
  float* const shared_sums = given + 4 * kWarps;
  float* const partial = arguments.partial + int64_t{blockIdx.x} * numbers;
  float* const sums = arguments.sums_in_shared != 0 ? shared_sums + team * numbers : partial;
  const T* const weight = static_cast<const T*>(arguments.weight);
  if (team < teams) {
    for (uint32_t pack = lane; pack < packs; pack += threads) {
      for (uint32_t four = 0; four < numbers / packs / 4; ++four)
        Store(sums + PlaceOfNormSum<T>(pack, four, packs), Pack<float>{});
    }
  }
  uint32_t turn = 0, largest = 0;
  for (int64_t first = int64_t{blockIdx.x} * teams; first < arguments.rows; first += int64_t{gridDim.x} * teams) {
    const int64_t row = first + team, begin = row * packs * kElements;
    const bool mine = team < teams && row < arguments.rows;
    const T* const grad = static_cast<const T*>(arguments.grad_output) + begin;
    const T* const input = static_cast<const T*>(arguments.input) + begin;
    const T* const carried = arguments.carried == nullptr ? nullptr : static_cast<const T*>(arguments.carried) + begin;
    T* const made = static_cast<T*>(arguments.grad_input) + begin;
    float* const of_warps = given + turn * 2 * kWarps;
    turn ^= 1;
    NormRow of = {0, 0, 0, 0};
    Pack<T> dy[kNormHeldBackward], x[kNormHeldBackward], past[kNormHeldBackward];
    if (mine) {
      of.rstd = arguments.rstd[row];
      if (centred) of.mean = arguments.mean[row];
      const auto add = [&](uint32_t pack, const Pack<T>& dy_of, const Pack<T>& x_of) {
        const Pack<T> w = Load(weight + int64_t{pack} * kElements);
        for (uint32_t k = 0; k < kElements; ++k) {
          const float g = Wide(dy_of.of[k]) * (Wide(w.of[k]) + arguments.weight_plus);
          if (centred) of.of_gradient += g;
          of.of_product += g * ((Wide(x_of.of[k]) - of.mean) * of.rstd);
        }
      };
      MOTLEY_UNROLL
      for (uint32_t i = 0; i < kNormHeldBackward; ++i) {
        const uint32_t pack = lane + i * threads;
        if (pack >= packs) continue;
        dy[i] = Load(grad + int64_t{pack} * kElements);
        x[i] = Load(input + int64_t{pack} * kElements);
        if (carried != nullptr) past[i] = Load(carried + int64_t{pack} * kElements);
      }
      MOTLEY_UNROLL
      for (uint32_t i = 0; i < kNormHeldBackward; ++i) {
        if (lane + i * threads < packs) add(lane + i * threads, dy[i], x[i]);
      }
      for (uint32_t pack = lane + kNormHeldBackward * threads; pack < packs; pack += threads) {
        add(pack, Load(grad + int64_t{pack} * kElements), Load(input + int64_t{pack} * kElements));
      }
      of.of_product = WarpSum(of.of_product);
      if (centred) of.of_gradient = WarpSum(of.of_gradient);
      if (threadIdx.x % kNormLanes == 0) {
        of_warps[2 * warp] = of.of_product;
        of_warps[2 * warp + 1] = of.of_gradient;
      }
    }
    __syncthreads();
    if (!mine) continue;
    of.of_product = of.of_gradient = 0;
    for (uint32_t one = team * warps; one < (team + 1) * warps; ++one) {
      of.of_product += of_warps[2 * one];
      of.of_gradient += of_warps[2 * one + 1];
    }
    of.of_product /= columns;
    of.of_gradient /= columns;
    const auto make = [&](uint32_t pack, const Pack<T>& dy_of, const Pack<T>& x_of, const Pack<T>& past_of) {
      const int64_t at = int64_t{pack} * kElements;
      const Pack<T> g = NormGradient<T>(of, dy_of, x_of, Load(weight + at), arguments.weight_plus, pack, packs, centred, sums);
      const Pack<T> sum = carried == nullptr ? g : SumOfPacks<T>(g, past_of);
      Store(made + at, sum);
      largest = LargestOf<T>(sum, largest);
    };
    MOTLEY_UNROLL
    for (uint32_t i = 0; i < kNormHeldBackward; ++i) {
      if (lane + i * threads < packs) make(lane + i * threads, dy[i], x[i], past[i]);
    }
    for (uint32_t pack = lane + kNormHeldBackward * threads; pack < packs; pack += threads) {
      const int64_t at = int64_t{pack} * kElements;
      make(pack, Load(grad + at), Load(input + at), carried == nullptr ? Pack<T>{} : Load(carried + at));
    }
  }
  if (arguments.not_finite != nullptr) MarkIfNotFinite(largest, arguments.not_finite);
  if (arguments.sums_in_shared == 0) return;
  __syncthreads();
  for (uint32_t place = threadIdx.x; place < numbers; place += kThreads) {
    float sum = shared_sums[place];
    for (uint32_t one = 1; one < teams; ++one) sum += shared_sums[one * numbers + place];
    partial[place] = sum;
  }
}

// The blocks' sums of columns, added up: 32 numbers a block, of which each warp adds up some blocks'.
template <typename T>
__global__ void __launch_bounds__(kThreads) NormWeightGradients(const NormWeightGradientsArguments arguments) {
  if (arguments.numbers == 0) return;
  constexpr uint32_t kWarps = kThreads / kNormLanes;
  const uint32_t warp = threadIdx.x / kNormLanes, place = blockIdx.x * kNormLanes + threadIdx.x % kNormLanes;
  float* const of_warps = SharedMemory<float>();  // [kWarps][kNormLanes]
  float sum = 0;
  if (place < arguments.numbers) {
    for (uint32_t block = warp; block < arguments.blocks; block += kWarps) {
      sum += arguments.partial[int64_t{block} * arguments.numbers + place];
    }
  }
  of_warps[threadIdx.x] = sum;
  __syncthreads();
  if (warp != 0 || place >= arguments.numbers) return;
  for (uint32_t one = 1; one < kWarps; ++one) sum += of_warps[one * kNormLanes + threadIdx.x];
  arguments.gradients[ColumnOfNormSum<T>(place, arguments.packs_of_row)] = sum;
}

}  // namespace motley::kernels
