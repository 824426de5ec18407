// The order in which parameters are stored: the units of placement (embedding, each layer, head), each one flat array of named
// tensors. Ownership, checkpoints and the engine share it. Names are HuggingFace's; of matrices the dimension that tensor
// parallelism divides comes first, and what it does not divide comes behind all that it does. So a rank's slice of a unit
// (model_slice.h) is few ranges of its array, and has the same layout.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/model/model.h"

namespace motley {

// What the names of model_family.h end in, and the name of an untied output projection.
inline constexpr std::string_view kWeightSuffix = ".weight", kBiasSuffix = ".bias", kHeadName = "lm_head";

// Of the order below: ranks that exchange arrays must agree in it. 1 was HuggingFace's.
inline constexpr int kStorageOrder = 2;

enum class UnitKind { kEmbedding, kLayer, kHead };

enum class InitKind { kZeros, kOnes, kNormal };

struct TensorSpec {
  std::string name;            // "transformer.h.0.attn.c_attn.weight"
  std::vector<int64_t> shape;  // as stored, row-major
  bool transposed = false;     // HuggingFace has this matrix the other way round
  // Rows of which tensor parallelism gives each rank a part, one after the other: of fused queries, keys and values three. None:
  // every rank of a tensor-parallel unit has the whole tensor.
  std::vector<int64_t> divided_rows;
  int64_t offset_elements = 0;  // in the unit's flat array
  int64_t num_elements = 0;
  InitKind init = InitKind::kNormal;
  double init_std = 0.02;
  // HuggingFace's.
  std::vector<int64_t> named_shape() const { return transposed ? std::vector{shape[1], shape[0]} : shape; }
  // Where HuggingFace has element `i` of the stored tensor.
  int64_t named_element(int64_t i) const { return transposed ? i % shape[1] * shape[0] + i / shape[1] : i; }
};

struct UnitSpec {
  UnitKind kind = UnitKind::kLayer;
  int64_t layer = -1;  // of a kLayer
  std::vector<TensorSpec> tensors;
  int64_t num_elements = 0;
  int64_t divided_elements = 0;  // the first so many are of tensors that tensor parallelism divides
};

// Unit 0 is the embedding, 1..num_layers the layers, num_layers+1 the head (final norm and, if untied, the output
// projection; a tied head computes with the embedding unit gathered beside it).
std::vector<UnitSpec> ParameterLayout(const ModelShape& shape);

inline int64_t NumUnits(const ModelShape& shape) { return shape.num_layers + 2; }
inline int64_t FirstUnitOf(UnitKind kind, const ModelShape& shape) {
  return kind == UnitKind::kEmbedding ? 0 : kind == UnitKind::kLayer ? 1 : NumUnits(shape) - 1;
}
int64_t NumParameters(const ModelShape& shape);

}  // namespace motley
