// How a norm's kernels (norm.h) lie on a card: a function of the shape alone, so that sums of columns have one order on all
// cards.
#pragma once

#include <algorithm>
#include <cstdint>

#include "worker/engine/kernels/kernel_arguments.h"

namespace motley::kernels {

// A warp a row.
inline unsigned BlocksOfNormForward(int64_t rows) { return static_cast<unsigned>((rows + kThreads / 32 - 1) / (kThreads / 32)); }

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
  // Two blocks for each of an H200's multiprocessors walk over the rows, each over 8 at least: the sums that they leave are few
  // beside what they read.
  constexpr int64_t kMostBlocks = 256, kLeastRows = 8;
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
