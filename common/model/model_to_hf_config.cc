// The config.json of a shape, as transformers reads it.
#include "common/model/model.h"
#include "nlohmann/json.hpp"

namespace motley {

std::string ToHfConfig(const ModelShape& shape) {
  nlohmann::json json;
  json["vocab_size"] = shape.vocab_size;
  json["tie_word_embeddings"] = shape.tie_embeddings;
  // Bytes have no special tokens; transformers' defaults would lie outside a vocabulary of 256.
  json["bos_token_id"] = nullptr;
  json["eos_token_id"] = nullptr;
  if (shape.family == ModelFamily::kGpt2) {
    json["model_type"] = "gpt2";
    json["architectures"] = {"GPT2LMHeadModel"};
    json["n_embd"] = shape.hidden_size;
    json["n_layer"] = shape.num_layers;
    json["n_head"] = shape.num_heads;
    json["n_inner"] = shape.intermediate_size;
    json["n_positions"] = shape.max_positions;
    json["layer_norm_epsilon"] = shape.norm_eps;
    json["activation_function"] = "gelu_new";
    for (const char* key : {"resid_pdrop", "embd_pdrop", "attn_pdrop"}) json[key] = 0.0;
  } else {
    json["model_type"] = "llama";
    json["architectures"] = {"LlamaForCausalLM"};
    json["hidden_size"] = shape.hidden_size;
    json["num_hidden_layers"] = shape.num_layers;
    json["num_attention_heads"] = shape.num_heads;
    json["num_key_value_heads"] = shape.num_kv_heads;
    json["head_dim"] = shape.head_dim;
    json["intermediate_size"] = shape.intermediate_size;
    json["max_position_embeddings"] = shape.max_positions;
    json["rms_norm_eps"] = shape.norm_eps;
    json["hidden_act"] = "silu";
    json["attention_bias"] = false;
    json["mlp_bias"] = false;
    json["attention_dropout"] = 0.0;
    // Both places: transformers 5 reads the second, older readers the first.
    json["rope_theta"] = shape.rope_theta;
    json["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", shape.rope_theta}};
  }
  return json.dump(2);
}

}  // namespace motley
