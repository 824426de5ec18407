// What of a model one rank of a tensor-parallel unit computes with: a run of *parts*. A part is one key-value head with its query
// heads, and as many of the MLP's columns and of the vocabulary's rows; what the division leaves over goes to the last part
// (Baton's partition unit). A rank stores its slice of a unit as the unit itself is stored: ParameterLayout of the slice's shape.
// Plain values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/model.h"
#include "common/model/parameters.h"

namespace motley {

// Parts [first, end) of `parts`.
struct ModelSlice {
  int64_t first = 0, end = 1, parts = 1;
  bool whole() const { return first == 0 && end == parts; }
  // The first of the unit's ranks adds what is added once: biases behind sums, positions.
  bool leads() const { return first == 0; }
  friend bool operator==(const ModelSlice&, const ModelSlice&) = default;
};

// Of a model's unit. One: of a family whose norms see what several heads make (IsDivisible).
inline int64_t NumParts(const ModelShape& shape) { return IsDivisible(TraitsOf(shape.family)) ? shape.num_kv_heads : 1; }

// The slices of a unit's ranks, in order. The shares add up to 1; each must be whole parts, one at least, within 0.001.
// INVALID_ARGUMENT names the shares that are, nearest to these; or what of the model is smaller than the ranks.
absl::StatusOr<std::vector<ModelSlice>> SlicesOf(const ModelShape& shape, std::span<const double> tp_shares);

// The model of which the rank computes all: fewer heads, columns and rows of the vocabulary.
ModelShape ShapeOf(const ModelShape& shape, const ModelSlice& slice);
// Its first row of the vocabulary.
int64_t FirstToken(const ModelShape& shape, const ModelSlice& slice);

// Consecutive elements of a unit's array that a slice has, and where.
struct SliceRun {
  int64_t in_unit = 0, in_slice = 0, elements = 0;
  friend bool operator==(const SliceRun&, const SliceRun&) = default;
};
// Ascending in both, neighbours joined: the runs of the divided tensors, then all that is not divided.
std::vector<SliceRun> RunsOf(const UnitSpec& unit, const ModelSlice& slice);

}  // namespace motley
