// The config.json of a shape, as transformers reads it.
#include "common/model/hf_windows.h"
#include "common/model/model.h"
#include "nlohmann/json.hpp"

namespace motley {
namespace {

using Json = nlohmann::json;

void WriteNEmbdKeys(const ModelShape& shape, Json* json) {
  Json& j = *json;
  j["n_embd"] = shape.hidden_size;
  j["n_layer"] = shape.num_layers;
  j["n_head"] = shape.num_heads;
  j["n_inner"] = shape.intermediate_size;
  j["n_positions"] = shape.max_positions;
  j["layer_norm_epsilon"] = shape.norm_eps;
}

// Of layers with a window.
double ThetaOfWindows(const ModelShape& shape) {
  for (const LayerKind& kind : shape.layer_kinds) {
    if (kind.window != 0 && kind.rope_theta != 0) return kind.rope_theta;
  }
  return shape.rope_theta;
}

void WriteHiddenSizeKeys(const ModelShape& shape, Json* json) {
  Json& j = *json;
  j["hidden_size"] = shape.hidden_size;
  j["num_hidden_layers"] = shape.num_layers;
  j["num_attention_heads"] = shape.num_heads;
  j["num_key_value_heads"] = shape.num_kv_heads;
  j["head_dim"] = shape.head_dim;
  j["intermediate_size"] = shape.intermediate_size;
  j["max_position_embeddings"] = shape.max_positions;
  j["rms_norm_eps"] = shape.norm_eps;
  // Both places: transformers 5 reads the second, older readers the first.
  j["rope_theta"] = shape.rope_theta;
  Json& rope = j["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", shape.rope_theta}};
  const FamilyTraits& traits = TraitsOf(shape.family);
  if (traits.rotary_layers == RotaryLayers::kChosen) {
    j["no_rope_layers"] = Json::array();
    for (int64_t layer = 0; layer < shape.num_layers; ++layer) j["no_rope_layers"].push_back(shape.KindOf(layer).rotary ? 1 : 0);
  }
  if (traits.query_scalar) j["query_pre_attn_scalar"] = shape.query_scalar == 0 ? shape.head_dim : shape.query_scalar;
  WriteWindows(shape, &j);
  const bool by_window = traits.rotary_bases == RotaryBases::kByWindow;
  if (by_window) {
    const double theta = ThetaOfWindows(shape);
    j["rope_local_base_freq"] = theta;
    rope = {{"full_attention", rope}, {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", theta}}}};
  }
  const RopeScaling& scaling = shape.rope_scaling;
  if (scaling.factor == 1) return;
  j["rope_scaling"] = {{"rope_type", "llama3"},
                       {"factor", scaling.factor},
                       {"low_freq_factor", scaling.low_freq_factor},
                       {"high_freq_factor", scaling.high_freq_factor},
                       {"original_max_position_embeddings", scaling.original_max_positions}};
  (by_window ? rope["full_attention"] : rope).update(j["rope_scaling"]);
}

}  // namespace

std::string ToHfConfig(const ModelShape& shape) {
  const FamilyTraits& traits = TraitsOf(shape.family);
  Json json = Json::parse(traits.config);
  json["model_type"] = traits.model_type;
  json["vocab_size"] = shape.vocab_size;
  json["tie_word_embeddings"] = shape.tie_embeddings;
  // Bytes have no special tokens; transformers' defaults would lie outside a vocabulary of 256.
  json["bos_token_id"] = nullptr;
  json["eos_token_id"] = nullptr;
  switch (traits.config_keys) {
    case ConfigKeys::kNEmbd:
      WriteNEmbdKeys(shape, &json);
      break;
    case ConfigKeys::kHiddenSize:
      WriteHiddenSizeKeys(shape, &json);
      break;
  }
  return json.dump(2);
}

}  // namespace motley
