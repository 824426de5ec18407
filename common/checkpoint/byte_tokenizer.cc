#include "common/checkpoint/byte_tokenizer.h"

#include <algorithm>

#include "nlohmann/json.hpp"

namespace motley {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr int kBytes = 256;
constexpr int kLineEnd = '\n';
constexpr int64_t kPipelineTokens = 256;  // of transformers' pipeline for text, unless it is told otherwise

bool StandsForItself(int byte) { return (byte > ' ' && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD); }

// A character below U+0800.
std::string Utf8(int character) {
  if (character < 0x80) return {static_cast<char>(character)};
  return {static_cast<char>(0xC0 | character >> 6), static_cast<char>(0x80 | (character & 0x3F))};
}

// The library writes bytes as GPT-2 does: one printable character for each. Those that print stand for themselves, the others for
// the characters from 256 on, in their order.
OrderedJson Vocabulary() {
  OrderedJson vocabulary;
  int next = kBytes;
  for (int byte = 0; byte < kBytes; ++byte) vocabulary[Utf8(StandsForItself(byte) ? byte : next++)] = byte;
  return vocabulary;
}

}  // namespace

std::string ByteTokenizer() {
  const OrderedJson bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}};
  const OrderedJson model = {{"type", "BPE"},
                             {"dropout", nullptr},
                             {"unk_token", nullptr},
                             {"continuing_subword_prefix", nullptr},
                             {"end_of_word_suffix", nullptr},
                             {"fuse_unk", false},
                             {"byte_fallback", false},
                             {"ignore_merges", false},
                             {"vocab", Vocabulary()},
                             {"merges", OrderedJson::array()}};
  const OrderedJson tokenizer = {
      {"version", "1.0"},      {"truncation", nullptr},  {"padding", nullptr},        {"added_tokens", OrderedJson::array()},
      {"normalizer", nullptr}, {"pre_tokenizer", bytes}, {"post_processor", nullptr}, {"decoder", bytes},
      {"model", model}};
  return tokenizer.dump(1) + "\n";
}

std::string ByteTokenizerConfig(int64_t max_positions) {
  OrderedJson config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                        {"model_max_length", max_positions},
                        {"clean_up_tokenization_spaces", false}};
  // Said, since transformers 5 takes Qwen 2's own class all the same, which would add its <|endoftext|> as token 256.
  for (const char* token : {"bos_token", "eos_token", "pad_token", "unk_token"}) config[token] = nullptr;
  return config.dump(2) + "\n";
}

std::string ByteGenerationConfig(int64_t max_positions) {
  OrderedJson config = {{"bos_token_id", kLineEnd}};
  if (max_positions < 2 * kPipelineTokens) config["max_new_tokens"] = std::max<int64_t>(1, max_positions / 2);
  return config.dump(2) + "\n";
}

}  // namespace motley
