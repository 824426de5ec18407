// Canonical parameter layout: the units of placement (embedding, each layer, head), each one flat array of named tensors.
// Placement, checkpoints, export and the engine share it. Tensor names and shapes are HuggingFace's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/model/model.h"

namespace motley {

// What the names of model_family.h end in, and the name of an untied output projection.
inline constexpr std::string_view kWeightSuffix = ".weight", kBiasSuffix = ".bias", kHeadName = "lm_head";

enum class UnitKind { kEmbedding, kLayer, kHead };

enum class InitKind { kZeros, kOnes, kNormal };

struct TensorSpec {
  std::string name;             // "transformer.h.0.attn.c_attn.weight"
  std::vector<int64_t> shape;   // row-major
  int64_t offset_elements = 0;  // in the unit's flat array
  int64_t num_elements = 0;
  InitKind init = InitKind::kNormal;
  double init_std = 0.02;
};

struct UnitSpec {
  UnitKind kind = UnitKind::kLayer;
  int64_t layer = -1;  // of a kLayer
  std::vector<TensorSpec> tensors;
  int64_t num_elements = 0;
};

// Unit 0 is the embedding, 1..num_layers the layers, num_layers+1 the head (final norm and, if untied, the output
// projection; a tied head computes with the embedding unit gathered beside it).
std::vector<UnitSpec> ParameterLayout(const ModelShape& shape);

inline int64_t NumUnits(const ModelShape& shape) { return shape.num_layers + 2; }
int64_t NumParameters(const ModelShape& shape);

}  // namespace motley
