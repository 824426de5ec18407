// How a norm's kernels (norm.h) lie on a card: a function of the shape alone, so that sums of columns have one order on all
// cards.
#pragma once

#include <algorithm>
#include <cstdint>

#include "worker/engine/kernels/kernel_arguments.h"

namespace motley::kernels {

struct NormForwardGrid {
  uint32_t packs_of_row, warps_of_row;
  unsigned blocks;
  static constexpr unsigned kSharedBytes = 2 * kThreads / 32 * sizeof(float);
};

// A warp for every 128 packs of a row, that a thread holds four of them in registers; a whole number of rows a block.
inline NormForwardGrid GridOfNormForward(int64_t rows, int64_t columns, int64_t element_bytes) {
  constexpr int64_t kWarps = kThreads / 32, kPacksOfWarp = 4 * 32;
  const int64_t packs = columns * element_bytes / kPackBytes;
  int64_t warps = 1;
  while (warps < kWarps && warps * kPacksOfWarp < packs) warps *= 2;
  const int64_t rows_of_block = kWarps / warps;
  return {.packs_of_row = static_cast<uint32_t>(packs),
          .warps_of_row = static_cast<uint32_t>(warps),
          .blocks = static_cast<unsigned>((rows + rows_of_block - 1) / rows_of_block)};
}

struct NormBackwardGrid {
  uint32_t packs_of_row, warps_of_row;
  uint32_t numbers;     // sums of columns: the weight's, of a centred norm the bias's behind them
  uint32_t blocks;      // each has sums of its own in the scratch
  bool sums_in_shared;  // else in the scratch, where rows are so wide that they have no place in shared memory
  unsigned shared_bytes;

  unsigned blocks_of_sums() const { return (numbers + 31) / 32; }
  static constexpr unsigned kSharedBytesOfSums = kThreads * sizeof(float);
};

// `element_bytes`: of the tensors. `centred`: LayerNorm. Columns: a multiple of a pack's elements.
inline NormBackwardGrid GridOfNormBackward(int64_t rows, int64_t columns, int64_t element_bytes, bool centred) {
  // Four blocks for each of an H200's multiprocessors walk over the rows, each over 8 at least: the sums that they leave are few
  // beside what they read.
  constexpr int64_t kMostBlocks = 528, kLeastRows = 8;
  constexpr int64_t kWarps = kThreads / 32, kSharedBytes = 48 << 10;
  const int64_t packs = columns * element_bytes / kPackBytes, numbers = columns * (centred ? 2 : 1);
  const int64_t warps = std::min(kWarps, (packs + 31) / 32);
  const int64_t of_warps = 4 * kWarps * static_cast<int64_t>(sizeof(float));
  const int64_t with_sums = of_warps + kWarps / warps * numbers * static_cast<int64_t>(sizeof(float));
  const bool fits = with_sums <= kSharedBytes;
  return {.packs_of_row = static_cast<uint32_t>(packs),
          .warps_of_row = static_cast<uint32_t>(warps),
          .numbers = static_cast<uint32_t>(numbers),
          .blocks = static_cast<uint32_t>(std::clamp((rows + kLeastRows - 1) / kLeastRows, int64_t{1}, kMostBlocks)),
          .sums_in_shared = fits,
          .shared_bytes = static_cast<unsigned>(fits ? with_sums : of_warps)};
}

}  // namespace motley::kernels
