// Motley's tokens, bytes, as other programs read them: the texts of an exported model's tokenizer. A token's id is its byte, 0 to
// 255; there are no special tokens, and ids above belong to the model's vocabulary alone. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace motley {

// tokenizer.json of the library `tokenizers`.
std::string ByteTokenizer();

// tokenizer_config.json, by which transformers' AutoTokenizer takes the file above whatever the model's family is.
std::string ByteTokenizerConfig(int64_t max_positions);

// generation_config.json. Text has no token that begins or ends it; who generates from nothing begins as behind a line's end. A
// pipeline that is not told how much to write writes 256 tokens: fewer, where these and a prompt are beyond the model's
// positions.
std::string ByteGenerationConfig(int64_t max_positions);

}  // namespace motley
