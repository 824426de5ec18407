// Where the elements of a unit are in the array of a rank that has a part of it: a slice, or the shard that it keeps. Ownership
// is of whole units, as checkpoints are; a rank's buffers have its part. Immutable; knows no torch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/model/model_slice.h"
#include "common/model/parameters.h"
#include "common/program/operation_traits.h"
#include "common/program/ownership.h"
#include "worker/engine/transport/communicator.h"

namespace motley::engine {

// Consecutive elements of a range of the unit, and where they are.
struct LocalPiece {
  int64_t in_range = 0, in_array = 0, elements = 0;
  friend bool operator==(const LocalPiece&, const LocalPiece&) = default;
};

class SliceMap {
 public:
  // `model`: the whole one.
  SliceMap(const ModelShape& model, const ModelSlice& slice);
  // By unit of the model.
  explicit SliceMap(std::vector<std::vector<SliceRun>> runs) : runs_(std::move(runs)) {}

  // By unit.
  const std::vector<std::vector<SliceRun>>& runs() const { return runs_; }
  // Of the rank's array of the unit.
  int64_t NumElements(int32_t unit) const {
    const std::vector<SliceRun>& runs = runs_[static_cast<size_t>(unit)];
    return runs.empty() ? 0 : runs.back().in_slice + runs.back().elements;
  }
  // The rank's elements of the unit that an instruction names.
  ElementRange Within(int32_t unit, const ArrayRange& elements) const;
  // Of elements [begin, end) of the whole unit those that the rank has in elements `within` of its array. `in_array` counts from
  // the first of these.
  std::vector<LocalPiece> PiecesOf(int32_t unit, int64_t begin, int64_t end, const ElementRange& within) const;
  std::vector<LocalPiece> PiecesOf(int32_t unit, int64_t begin, int64_t end) const;

  // What the members of a group have of elements `within`, by `ranges` of the whole unit, in the order of the group's ring. The
  // same for all members: they have the same elements there, wherever those are in their arrays.
  Owners OwnersIn(const OwnedRanges& ranges, const std::vector<int32_t>& members, int32_t unit, const ElementRange& within) const;

 private:
  std::vector<std::vector<SliceRun>> runs_;
};

}  // namespace motley::engine
