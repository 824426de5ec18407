// The shape of a transformer, described by HuggingFace config.json keys, and the places where sizes come from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace motley {

enum class ModelFamily {
  kGpt2,   // LayerNorm, learned positions, GELU (tanh), biases, fused qkv stored as Conv1D [in, out]
  kLlama,  // RMSNorm, rotary positions, SwiGLU, grouped-query heads, no biases, Linear [out, in]
};

struct ModelShape {
  ModelFamily family = ModelFamily::kGpt2;
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t num_layers = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;  // = num_heads for GPT-2
  int64_t head_dim = 0;      // hidden_size / num_heads unless the config says otherwise
  int64_t intermediate_size = 0;
  int64_t max_positions = 0;  // longest sequence
  double norm_eps = 1e-5;
  double rope_theta = 10000.0;  // Llama only
  bool tie_embeddings = true;   // the head uses the embedding's weight

  friend bool operator==(const ModelShape&, const ModelShape&) = default;
};

// Reads HuggingFace config.json text (model_type gpt2 or llama). What is not supported (mixture of experts, rope scaling,
// attention bias, other activations, nonzero dropout) is refused by key. `source` names the text in errors.
absl::StatusOr<ModelShape> ParseHfConfig(std::string_view json_text, std::string_view source);

// The config.json that transformers loads for this shape (dropouts 0). ParseHfConfig(ToHfConfig(s)) == s.
std::string ToHfConfig(const ModelShape& shape);

// A named size, e.g. ("gpt2", "124M"), ("llama3", "debug"). NOT_FOUND names the nearest and lists the known ones.
absl::StatusOr<ModelShape> ModelFlavor(std::string_view name, std::string_view flavor);
std::vector<std::string> KnownFlavors(std::string_view name);

}  // namespace motley
