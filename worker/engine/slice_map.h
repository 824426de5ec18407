// Where the elements of a unit are in the array of a rank that has a slice of it. Ownership is of whole units, as checkpoints
// are; a rank's buffers have its slice. Immutable; knows no torch.
#pragma once

#include <cstdint>
#include <vector>

#include "common/model/model_slice.h"
#include "common/model/parameters.h"
#include "common/program/operation_traits.h"
#include "common/session/assignment.h"
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

  // Of the slice's units.
  const std::vector<UnitSpec>& layout() const { return layout_; }
  // The rank's elements of the unit that an instruction names.
  ElementRange Within(int32_t unit, const ArrayRange& elements) const;
  // Of elements [begin, end) of the whole unit those that the rank has in elements `within` of its array. `in_array` counts from
  // the first of these.
  std::vector<LocalPiece> PiecesOf(int32_t unit, int64_t begin, int64_t end, const ElementRange& within) const;
  std::vector<LocalPiece> PiecesOf(int32_t unit, int64_t begin, int64_t end) const;

  // What the members of a program's group own of elements `within`, in the order of the group's ring. The same ranges for all
  // members: they have the same elements there, wherever those are in their arrays.
  Owners OwnersIn(const RankAssignment& assignment, const Program& program, int group, int32_t unit,
                  const ElementRange& within) const;

 private:
  std::vector<UnitSpec> layout_;
  std::vector<std::vector<SliceRun>> runs_;  // by unit
};

}  // namespace motley::engine
