// The families of models: what distinguishes them, one row of traits a family. Whoever asks a question about a model's layers
// asks its family's traits, never which family it is; a family is added by a row (docs/inside/extending.md).
#pragma once

#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

namespace motley {

// Stored profiles are found by these numbers: a new family comes last.
enum class ModelFamily { kGpt2, kLlama, kQwen2, kPhi3, kQwen3, kSmolLm3, kOlmo2, kGemma3 };
inline constexpr ModelFamily kModelFamilies[] = {ModelFamily::kGpt2,  ModelFamily::kLlama, ModelFamily::kQwen2,
                                                 ModelFamily::kPhi3,  ModelFamily::kQwen3, ModelFamily::kSmolLm3,
                                                 ModelFamily::kOlmo2, ModelFamily::kGemma3};

// Plus one: what the weight is short of 1 is stored, so that of a new model it is 0.
enum class NormKind { kLayerNorm, kRmsNorm, kRmsNormPlusOne };
enum class PositionKind { kLearned, kRotary };
enum class ActivationKind { kGeluTanh, kSwiGlu, kGeGlu };
// Where the norms of attention and MLP stand: what they normalise is what is read, or what is added to the residual stream, or
// both, by a norm each.
enum class NormPlaces { kBefore, kBehind, kBoth };
// Norms of the queries and keys before they are rotated. By head: of each head by itself, with one weight for all heads of
// queries and one for those of keys. Whole: of all queries of a token together, and of all its keys.
enum class HeadNorm { kNone, kByHead, kWhole };
// Whether config.json may leave out the rotary positions of some layers (no_rope_layers).
enum class RotaryLayers { kAll, kChosen };
// Of rotary positions: one base for all layers, or one of their own for those with a window.
enum class RotaryBases { kOne, kByWindow };
// A product's matrix: as Conv1D keeps it, [in, out], or as Linear does, [out, in].
enum class WeightLayout { kInOut, kOutIn };
// Which names config.json has for the sizes: n_embd, n_layer, ... or hidden_size, num_hidden_layers, ...
enum class ConfigKeys { kNEmbd, kHiddenSize };

struct BiasTraits {
  bool norm = false, qkv = false, out = false, mlp = false;  // mlp: of both its products
};

// The checkpoint's names, without ".weight" and ".bias". Those of a layer follow the prefix `layers` and the layer's index.
struct TensorNames {
  std::string_view tokens;
  std::string_view positions;  // empty unless positions are learned
  std::string_view layers;     // "transformer.h."
  std::string_view norm1;
  std::span<const std::string_view> qkv;  // one name: fused; three: queries, keys, values
  std::string_view out;
  std::string_view norm2;
  std::span<const std::string_view> up;  // one name: fused; else one for each product, gate and up of SwiGLU
  std::string_view down;
  std::string_view final_norm;
  std::span<const std::string_view> head_norm;  // of queries and of keys; empty: none
  std::string_view behind1 = {}, behind2 = {};  // where norms come before and behind: those behind
};

struct FamilyTraits {
  std::string_view model_type;  // of its config.json: "gpt2"
  NormKind norm;
  NormPlaces norm_places = NormPlaces::kBefore;
  PositionKind positions;
  ActivationKind activation;
  HeadNorm head_norm = HeadNorm::kNone;
  RotaryLayers rotary_layers = RotaryLayers::kAll;
  RotaryBases rotary_bases = RotaryBases::kOne;
  bool scales_embedding = false;  // what the token table gives, by sqrt(hidden_size), rounded to its type
  bool query_scalar = false;      // whether config.json says by what queries are scaled (query_pre_attn_scalar)
  BiasTraits biases;
  WeightLayout weights;     // of HuggingFace's matrices; ours: common/model/parameters.h
  bool residuals_by_depth;  // what writes to the residual stream starts smaller the more layers there are
  ConfigKeys config_keys;
  std::string_view config;  // JSON: the keys of its config.json that are the same for all its shapes
  TensorNames names;
};

// Exhaustive: a family without a row, or one whose traits the engine cannot put together, does not compile.
const FamilyTraits& TraitsOf(ModelFamily family);

// Numbers a token that the backward of a norm needs beside its input: mean and reciprocal deviation, or the latter alone.
constexpr int64_t StatisticsOf(NormKind norm) {
  switch (norm) {
    case NormKind::kLayerNorm:
      return 2;
    case NormKind::kRmsNorm:
    case NormKind::kRmsNormPlusOne:
      return 1;
  }
  std::abort();
}

// Tensors that norms of heads have.
constexpr int64_t HeadNormWeightsOf(HeadNorm norm) {
  switch (norm) {
    case HeadNorm::kNone:
      return 0;
    case HeadNorm::kByHead:
    case HeadNorm::kWhole:
      return 2;
  }
  std::abort();
}

// Products that an activation takes side by side: SwiGLU and GeGLU a gate and what it gates.
constexpr int64_t UpProductsOf(ActivationKind activation) {
  switch (activation) {
    case ActivationKind::kGeluTanh:
      return 1;
    case ActivationKind::kSwiGlu:
    case ActivationKind::kGeGlu:
      return 2;
  }
  std::abort();
}

// Whether a rank can compute some heads of a layer without the others: no norm sees what several of them make.
constexpr bool IsDivisible(const FamilyTraits& traits) {
  return traits.norm_places == NormPlaces::kBefore && traits.head_norm != HeadNorm::kWhole;
}

// Tables that the embedding looks up.
constexpr int64_t TablesOf(PositionKind positions) {
  switch (positions) {
    case PositionKind::kLearned:
      return 2;
    case PositionKind::kRotary:
      return 1;
  }
  std::abort();
}

// Whether a layer of both is the same arithmetic, but for biases and how it is stored.
bool SameLayers(const FamilyTraits& a, const FamilyTraits& b);

}  // namespace motley
