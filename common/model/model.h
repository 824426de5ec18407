// The shape of a transformer, described by HuggingFace config.json keys, and the places where sizes come from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/model_family.h"

namespace motley {

// How Llama 3.1 stretches rotary positions (transformers' rope_type "llama3"): slow frequencies are divided by `factor`, fast
// ones stay, those between are mixed. Which is which says how often a frequency turns within original_max_positions.
struct RopeScaling {
  double factor = 1;                                 // 1: none
  double low_freq_factor = 1, high_freq_factor = 4;  // turns
  int64_t original_max_positions = 0;
  friend bool operator==(const RopeScaling&, const RopeScaling&) = default;
};

// What a layer has of what its family's layers may have.
struct LayerKind {
  bool rotary = true;
  int64_t window = 0;     // a position attends to the last so many, itself among them; 0: to all earlier ones
  double rope_theta = 0;  // of its rotary positions, which are not scaled then; 0: the model's
  friend bool operator==(const LayerKind&, const LayerKind&) = default;
};

struct ModelShape {
  ModelFamily family = ModelFamily::kGpt2;
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t num_layers = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;  // = num_heads where qkv is fused
  int64_t head_dim = 0;      // hidden_size / num_heads unless the config says otherwise
  int64_t intermediate_size = 0;
  int64_t max_positions = 0;  // longest sequence
  double norm_eps = 1e-5;
  double rope_theta = 10000.0;  // of rotary positions
  bool tie_embeddings = true;   // the head uses the embedding's weight
  RopeScaling rope_scaling = {};
  int64_t query_scalar = 0;                 // scores are divided by its root; 0: by that of head_dim
  std::vector<LayerKind> layer_kinds = {};  // of each layer; empty: all that the family has, in every layer

  LayerKind KindOf(int64_t layer) const { return layer_kinds.empty() ? LayerKind() : layer_kinds[static_cast<size_t>(layer)]; }

  friend bool operator==(const ModelShape&, const ModelShape&) = default;
};

// Whether both are trained alike, from the same parameters, on sequences of `seq_len` tokens: a window that holds these is none.
bool SameModel(const ModelShape& a, const ModelShape& b, int64_t seq_len);

// What tells a model from others in messages: "5 parameters", "5 parameters and a window of 64 tokens in 1 of its layers".
std::string ModelWords(const ModelShape& shape);

// Reads HuggingFace config.json text for training: model_type gpt2, llama, qwen2, qwen3, phi3, smollm3, or mistral, whose layers
// are Llama's. What the engine would not compute exactly (rope scaling but Llama 3.1's, other biases, other activations) is
// refused by key; a window of which transformers reads nothing only where `seq_len` tokens, 0 = not known, are more than it
// holds. INVALID_ARGUMENT: one line per problem, the model_type first; `source` names the text in them.
absl::StatusOr<ModelShape> ParseHfConfig(std::string_view json_text, std::string_view source, int64_t seq_len = 0);

struct HfModel {
  ModelShape shape;
  std::vector<std::string> notes;  // one for each way in which the model's price or training is not the shape's
};
// The same, with what is trained otherwise than the config says: without its dropout.
absl::StatusOr<HfModel> ParseHfModel(std::string_view json_text, std::string_view source, int64_t seq_len);
// The same for planning, which needs sizes alone: what ParseHfConfig refuses for training is a note here, and the model_type
// gemma2 is read as the Llama shape of its sizes. Refused is what has no such shape (mixture of experts) and what is
// wrong. Without notes, or with those of ParseHfModel alone, it is ParseHfConfig's shape.
absl::StatusOr<HfModel> ParseHfShape(std::string_view json_text, std::string_view source);

// The config.json that transformers loads for this shape (dropouts 0). ParseHfConfig(ToHfConfig(s)) == s.
std::string ToHfConfig(const ModelShape& shape);

// A named size, e.g. ("gpt2", "124M"), ("llama3", "debug"), ("qwen2", "0.5B"). NOT_FOUND names the nearest and lists the known
// ones.
absl::StatusOr<ModelShape> ModelFlavor(std::string_view name, std::string_view flavor);
std::vector<std::string> KnownFlavors(std::string_view name);

}  // namespace motley
