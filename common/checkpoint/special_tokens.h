// Ids of the tokens that begin, end and pad a text, as a tokenizer's folder says them: config.json of an export needs them where
// the model began from its seed, or whoever generates with it does not end.
#pragma once

#include <cstdint>

#include "common/weights/base_model.h"
#include "nlohmann/json.hpp"

namespace motley {

// bos_token_id, eos_token_id and pad_token_id, as far as they are known: a number, of eos also a list. From
// generation_config.json, or the token that tokenizer_config.json or special_tokens_map.json names, looked up where the tokenizer
// has it. What is not below `vocab_size`, or in a file that cannot be read as such, is left out.
nlohmann::json SpecialTokenIds(const BaseModel& base, int64_t vocab_size);

}  // namespace motley
