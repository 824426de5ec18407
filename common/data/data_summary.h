// What is known of a job's data before it is trained on: by it nodes compare theirs, and samples are counted. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace motley {

// kText: UTF-8, whose bytes are the tokens. kStream: tokens one after the other, cut at every seq_len. kRows: packed rows of
// whole documents, made for one seq_len.
enum class DataKind { kText, kStream, kRows };

struct DataSummary {
  int64_t bytes = 0;   // of its files
  std::string digest;  // text: SHA-256 (hex) of the files' bytes in name order; tokens: of tokens.json, or of the file
  DataKind kind = DataKind::kText;
  int64_t tokens = 0;      // of text its bytes
  int64_t rows = 0;        // of kRows
  int64_t row_tokens = 0;  // of kRows: the seq_len that they were made for
  int64_t greatest_token = 0;
  int64_t trained_tokens = 0;  // targets that count; of a stream all but the first
  int64_t source_bytes = 0;    // of the text that the tokens were made of; 0: not known
  std::string tokenizer;       // SHA-256 (hex) of its tokenizer.json; empty: bytes, or not known
  friend bool operator==(const DataSummary&, const DataSummary&) = default;
};

// Of text: its tokens are its bytes.
inline DataSummary TextSummary(int64_t bytes, std::string digest) {
  return {.bytes = bytes,
          .digest = std::move(digest),
          .tokens = bytes,
          .greatest_token = 255,
          .trained_tokens = bytes > 0 ? bytes - 1 : 0,
          .source_bytes = bytes,
          .tokenizer = {}};
}

}  // namespace motley
