// What the units of a rank's program take for its microbatches. Every pass asks, and units are of three kinds and microbatches of
// few sizes: each answer is counted once. Not thread-safe: of one walk of a program.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "common/model/model_slice.h"
#include "common/program/program.h"
#include "planner/costs/costs.h"
#include "planner/costs/rank_bytes.h"
#include "planner/plan/op_set.h"

namespace motley::planner {

class ProgramBytes {
 public:
  // `costs` and `program` must outlive it. `kind`: of the rank's device.
  ProgramBytes(const Costs& costs, int kind, const ModelSlice& slice, const Program& program);

  // As Costs and RankBytes have them, of places in the program.
  int64_t Boundary(int32_t microbatch);
  int64_t Rows(int32_t microbatch);
  int64_t Saved(OpSet recomputed, int32_t unit, int32_t microbatch);
  int64_t Workspace(int32_t unit, int32_t microbatch);
  int64_t Waiting(int32_t unit, int32_t microbatch);
  int64_t BackwardInputWorkspace(int32_t unit, int32_t microbatch);
  int64_t BackwardWeightWorkspace(int32_t unit, int32_t microbatch);
  int64_t LayerForwardWorkspace(int32_t microbatch);
  // A whole head's that trains: it keeps the input that is there, and launches nothing (common/model/operators.h).
  bool TakesNothing(const Forward& forward, int32_t unit) const;
  int64_t Elements(UnitKind unit) const { return bytes_.Elements(unit); }

 private:
  using Known = std::optional<int64_t>;
  struct BytesOfUnit {
    Known workspace, waiting, backward_input, backward_weight;
    std::vector<std::pair<OpSet, int64_t>> saved;  // by what is recomputed
  };
  struct BytesOfSize {
    explicit BytesOfSize(int64_t of) : samples(static_cast<double>(of)) {}
    double samples;
    Known boundary, rows, layer_forward;
    std::array<BytesOfUnit, 3> units;  // by UnitKind
  };
  using CountOfUnit = int64_t (RankBytes::*)(UnitKind, double) const;
  int64_t OfUnit(Known BytesOfUnit::*known, CountOfUnit count, int32_t unit, int32_t microbatch);
  // Of a whole head, whose profile is of the fewest rows at once.
  int64_t OfMoreHeadRows(int32_t unit, int32_t microbatch);
  BytesOfSize& OfSize(int32_t microbatch) { return sizes_[size_of_[microbatch]]; }

  const Costs& costs_;
  const RankBytes bytes_;
  const Program& program_;
  std::vector<size_t> size_of_;  // by microbatch
  std::vector<BytesOfSize> sizes_;
};

}  // namespace motley::planner
