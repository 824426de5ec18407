// A small config.json of any type that has Llama's keys.
#pragma once

#include <string>

namespace motley {

// Of the types whose sizes have no defaults.
inline std::string With(const std::string& type, const std::string& more) {
  return R"({"model_type": ")" + type + R"(", "vocab_size": 256, "hidden_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 192, "max_position_embeddings": 256)" +
         more + "}";
}

}  // namespace motley
