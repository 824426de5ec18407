// Ownership: which rank owns which elements of the training state. The owner of an element keeps its master copy and its moments,
// steps it, counts its gradient in the norm and writes it to checkpoints. Every element has one owner, also where nothing is
// sharded: kernels of unlike devices differ in the last bits, so replicas that each step themselves would drift. A plain value,
// made once when a plan is finished and asked by everybody.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"

namespace motley {

// Elements [begin, end) of a block's flat array, in the order in which ranks store it.
struct OwnedRange {
  int32_t rank = 0;
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  friend bool operator==(const OwnedRange&, const OwnedRange&) = default;
};
// Of one array: ascending, neither hole nor overlap, none empty. A rank may own several.
using OwnedRanges = std::vector<OwnedRange>;

// Blocks first to last.
struct BlockSpan {
  int32_t first = 0, last = 0;
  friend bool operator==(const BlockSpan&, const BlockSpan&) = default;
};

// Of all blocks of a model: embedding, layers, head. Blocks that are owned alike are stored once.
class Ownership {
 public:
  // Of the next block. Neighbours of one rank become one range, empty ones none.
  void Add(const OwnedRanges& ranges);

  int32_t num_blocks() const { return static_cast<int32_t>(alike_.size()); }
  const OwnedRanges& Of(int32_t block) const { return ranges_[static_cast<size_t>(alike_[static_cast<size_t>(block)])]; }
  int64_t NumElements(int32_t block) const { return Of(block).empty() ? 0 : Of(block).back().end; }
  int64_t NumOwned(int32_t block, int32_t rank) const;
  // Elements of all blocks, by rank. Every owner is one of `world`. Also of ranges that Validate refuses, which could add up to
  // more than an integer holds.
  std::vector<double> NumOwnedByRank(size_t world) const;

  // Ranges, and the blocks that are owned so.
  struct Alike {
    std::vector<BlockSpan> blocks;
    const OwnedRanges* ranges = nullptr;
  };
  std::vector<Alike> AlikeBlocks() const;

  friend bool operator==(const Ownership&, const Ownership&) = default;

 private:
  std::vector<int32_t> alike_;       // by block: into ranges_
  std::vector<OwnedRanges> ranges_;  // distinct
};

// INVALID_ARGUMENT names the block and the elements that nobody owns or two ranks do, or a rank that there is not. `elements`: of
// each block.
absl::Status Validate(const Ownership& ownership, const std::vector<int64_t>& elements, int32_t world);

}  // namespace motley
