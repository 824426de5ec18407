// Bytes of a rank's units as the engine runs them: whole ones, or the slices of a tensor-parallel rank. Costs knows what was
// measured of whole units and whole backwards; how much less a slice takes, and how much more half of a backward, is counted
// (common/model/pass_bytes.h). Immutable, thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "common/model/model.h"
#include "common/model/model_slice.h"
#include "common/model/op_set.h"
#include "planner/costs/costs.h"

namespace motley::planner {

class RankBytes {
 public:
  // `costs` must outlive it. `kind`: of the rank's device.
  RankBytes(const Costs& costs, int kind, const ModelSlice& slice);

  // As Costs has them.
  int64_t Saved(UnitKind unit, OpSet recomputed, double samples) const;
  int64_t Waiting(UnitKind unit, double samples) const;
  int64_t Workspace(UnitKind unit, double samples) const;
  // Beside all that the forward keeps: of kernels, which a slice's are taken to need as the whole layer's.
  int64_t LayerForwardWorkspace(double samples) const;
  // The largest temporaries of the halves of a backward, beside what is there before it and the gradient of the input.
  int64_t BackwardInputWorkspace(UnitKind unit, double samples) const;
  int64_t BackwardWeightWorkspace(UnitKind unit, double samples) const;
  // Of the unit's array.
  int64_t Elements(UnitKind unit) const { return elements_[static_cast<size_t>(unit)]; }

 private:
  const Costs& costs_;
  const int kind_;
  const bool whole_;
  const ModelShape own_;
  const int64_t seq_len_;
  const DType dtype_;
  std::array<int64_t, 3> elements_{};         // by UnitKind
  std::array<std::vector<OpCost>, 3> saved_;  // by UnitKind, of a sample of the slice
};

}  // namespace motley::planner
